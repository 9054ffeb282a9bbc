"""One request to an endpoint, and its answer: `slipway invoke`.

- `realtime.py`: of an endpoint that answers at once, as a whole or in parts, or that has to wake.
- `asynchronous.py`: of an endpoint that takes requests from a queue.
"""
