"""Slipway's model.py for AWS's DJL LMI images, in a directory that a config names as `script`."""
