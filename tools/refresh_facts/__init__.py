"""Generates the tables of slipway/facts and of resource types, each from its sources.

`make facts` runs the scripts that need no AWS account. A run without new facts leaves the
file unchanged, so its date is the date of the last change.
"""
