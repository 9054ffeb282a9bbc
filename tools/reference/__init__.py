"""`python -m tools.reference`: writes the parts of pages that follow from the code.

Such a page is written by hand, but for its blocks: what stands between `<!-- begin NAME -->` and
`<!-- end -->` is written anew. `pages` has the pages; other modules have the blocks of one or two:

- `configs`: the fields of the two YAML files
- `commands`: the commands of `slipway`
- `variables` and `metrics`: of the containers and stacks

A test fails when a block and its source differ.
"""
