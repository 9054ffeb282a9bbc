"""One request to an endpoint, and its answer: `slipway invoke`.

- `realtime.py`: of an endpoint that answers at once, as a whole or in parts, or that has to wake.
- `mode.py`: which of the two, by the model's file.
- `asynchronous.py`: of an endpoint that takes requests from a queue.
"""
