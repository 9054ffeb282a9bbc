"""The directory that an LMI config names as `serving.script`."""
