"""SageMaker real-time hosting: models, endpoint configurations, and endpoints that serve.

`service` is the control plane, `runtime` the data plane. An endpoint's containers are processes of
this machine: `families` says which, `model_data` lays out their model directory, `process` starts
and stops them, `variants` waits for their health checks, `endpoints` moves traffic between them.
docs/embedded-aws/hosting.md lists what is emulated and what is not.
"""
