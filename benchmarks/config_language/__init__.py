"""What it costs to read, check and plan model configs: time and memory of fresh processes.

One direction: `design` says what is measured and what is promised, `configs` makes the project,
`probe` is what runs in each fresh process, `session` goes through the design, `summary` computes,
`report` writes.
"""
