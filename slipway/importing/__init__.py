"""Makes a model config of what somebody has already; each guess has a comment.

- `draft.py`: the result, and its YAML.
- `networks.py`: what the name of a checkpoint tells of the network.
- `weights.py`: weights as other tools name them.
- `checkpoints.py`: a checkpoint in a folder or on the Hub.
- `call.py`: the keyword arguments of a notebook's call.
- `lmi/`: an LMI model, from its files or from the variables of a call.
- `custom/`: any other image, from a call.

A setting that the config language has no place for is listed with the reason, and never dropped.
"""
