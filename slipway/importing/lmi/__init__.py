"""Makes an LMI config of serving.properties: the inverse of `planning.families.lmi.properties`.

- `source.py`: reads the file, and what lies beside it.
- `weights.py`: where the file says that the weights are.
- `serving.py`: the section `serving`, for one image.
- `drafts.py`: the whole config; leaves out what the image does not read.
- `settings.py`: what the files of a checkpoint suggest, without settings of a server.
- `offers.py`: options that a model's authors ask for.
- `images.py`: the newest image that suits a file, where the user names none.
"""
