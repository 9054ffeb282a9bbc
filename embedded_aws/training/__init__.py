"""SageMaker training jobs: the container's program runs as a process of this machine.

`service` is the control plane, `requests` what it refuses, `jobs` what it remembers of a job, `run`
takes a job from its input to its output, `layout` is the directory the program sees.
docs/embedded-aws/training.md lists what is emulated and what is not.
"""
