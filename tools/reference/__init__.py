"""Generates the pages of docs that follow from the code: `python -m tools.reference`.

- `configs`: the fields of the two YAML files
- `commands`: the commands of `slipway`
- `variables` and `metrics`: of the containers and stacks
- `resource_types`: what the embedded AWS deploys

A test fails when a page and its source differ.
"""
