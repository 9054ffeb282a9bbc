"""Inference components: models that share the instances of an endpoint.

- `component`: a component with its copies, and `requests` that are checked before it changes.
- `changes`: how copies start, stop and are replaced, in the background.
- `service`: the operations of the API.
- `sampler`: metrics between requests, and the release of idle instances.
"""
