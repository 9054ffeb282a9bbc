"""SageMaker training jobs: the container's program runs as a process of this machine.

`service` is the control plane. `requests` checks requests, and `jobs` holds the state of a job.
`run` takes a job from its input to its output, in the directory that the program sees.
docs/embedded-aws/services.md lists what is emulated and what is not.
"""
