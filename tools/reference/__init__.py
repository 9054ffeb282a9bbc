"""Generates the reference pages of containers and stacks: `python -m tools.reference`.

`slipway.config.reference` generates the pages of the two YAML files, and `slipway.cli.reference`
the pages of the commands.
"""
