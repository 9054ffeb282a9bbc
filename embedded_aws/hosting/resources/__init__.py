"""Models and endpoint configurations: their checks, and the memory of the control plane.

`records` keeps named resources with their `tags`, and lists them. `declared` are the resources that
only store their create request: `models` and `endpoint_configs`. The other modules check parts of
such a request.
"""
