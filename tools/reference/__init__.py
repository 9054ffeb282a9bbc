"""`python -m tools.reference`: writes the parts of pages that follow from the code.

Such a page is written by hand, but for its blocks: what stands between `<!-- begin NAME -->` and
`<!-- end -->` is written anew. Each module beside this one has the blocks of a page, or of two:

- `configs`: the fields of the two YAML files
- `commands`: the commands of `slipway`
- `variables` and `metrics`: of the containers and stacks
- `resource_types`: what the embedded AWS deploys

A test fails when a block and its source differ.
"""
