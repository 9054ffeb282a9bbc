"""Models and endpoint configurations: their checks, and the memory of the control plane.

`records` keeps named resources with their `tags`, and lists them. `models` and `endpoint_configs`
check a create request, and the other modules check parts of one.
"""
