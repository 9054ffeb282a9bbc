"""From a valid config to a deployment plan, or to every reason why there can be none.

Pure: no files, no clock, no network, no randomness. The same arguments give the same plan.
"""
