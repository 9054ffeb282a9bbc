"""The cost of reading, checking and planning model configs: time and memory of fresh processes."""
