"""Measurements of Slipway, each a package with a command line of its own.

`program` begins and ends every run, `trials` orders the measurements, `estimates` judges them, and
`report` gives every result its form. `execution` and `processes` start programs. `load` drives a
load, and `servers` starts the subjects of a comparison, such as `baselines`, and compares their
answers.
"""
