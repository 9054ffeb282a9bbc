"""Makes an LMI config of serving.properties: the inverse of `planning.families.lmi.properties`.

- `source.py`: reads the file, what lies beside it, and where it says that the weights are.
- `variables.py`: reads the same out of the variables of a call, or out of a package.
- `serving.py`: the section `serving`, for one image.
- `drafts.py`: the whole config; leaves out what the image does not read.
- `settings.py`: what the files of a checkpoint suggest, and the config that follows.
- `offers.py`: options that a model's authors ask for.
- `images.py`: the newest image that suits a file, where the user names none.
"""
