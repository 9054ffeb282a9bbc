"""SageMaker real-time hosting: models, endpoint configurations, and endpoints that serve.

`service` is the control plane, `runtime` the data plane. `variants` fills a container's
model directory, starts the container and waits for its health check. `endpoints` moves traffic
between fleets. `program_launcher` starts a container as a process of this machine, with the program
that `families` selects. `image_launcher` starts it in its image. docs/embedded-aws/hosting.md lists
what is emulated and what is not.
"""
