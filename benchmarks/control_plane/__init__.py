"""The wall time of a user's commands as the number of model configs grows."""
