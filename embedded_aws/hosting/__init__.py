"""SageMaker real-time hosting: models, endpoint configurations, and endpoints that serve.

`service` is the control plane, `runtime` the data plane. An endpoint's containers are processes of
this machine: `families` selects the program, `model_data` fills its model directory, `process`
starts and stops it, `variants` waits for its health check, `endpoints` moves traffic between
fleets. docs/embedded-aws/hosting.md lists what is emulated and what is not.
"""
