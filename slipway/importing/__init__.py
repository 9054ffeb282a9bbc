"""Makes a model config of what somebody has already; each guess has a comment.

- `draft.py`: the result, and its YAML.
- `networks.py`: what the name of a checkpoint tells of the network.
- `lmi/`: `slipway import --properties`, the files of an LMI model.

A setting that the config language has no place for is listed with the reason, and never dropped.
"""
