"""SageMaker real-time hosting: models, endpoint configurations, and endpoints that serve.

`service` puts the rooms together. In the order of a deployment and of a request they are:

1. `resources`: models and endpoint configurations are checked and kept, with the tags of all.
2. `endpoints`: an endpoint is created, updated and deleted; an update moves traffic between fleets.
3. `fleets`: the endpoint and what runs for it: variants, their containers and their instances.
4. `launch`: starts a container: as a process of this machine, or in its image.
5. `families`: the program that stands for an image.
6. `components`: inference components, which share the instances of an endpoint.
7. `invocations`: the data plane; a request goes to a variant's container.
8. `asynchronous`: requests that wait in a queue, and answers in S3.
9. `telemetry`: metrics in CloudWatch, and captured requests in S3.

docs/embedded-aws/hosting.md lists what is emulated and what is not.
"""
