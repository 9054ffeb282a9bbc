"""The serving core that the families share: HTTP contract, dynamic batching, settings, logs.

One direction: `server` starts and drains the process, `app` speaks HTTP, `service` owns one
predictor, `batching` and `continuous` decide what runs together. `connections`, `bodies` and
`memory` bound what clients can take; `metrics` counts. A family supplies a predictor and its own
settings; nothing here knows about models or tensors.
"""
