"""The reference pages that containers and stacks are the source of: `python -m tools.reference`.

The pages of the two YAML files are `slipway.config.reference`'s, and those of the commands are
`slipway.cli.reference`'s.
"""
