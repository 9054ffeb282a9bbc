"""The serving core that the families share: HTTP contract, dynamic batching, settings, logs.

Imports go one way: `server` starts and drains the process, `app` speaks HTTP, `service` owns one
predictor, `batching` and `continuous` decide which inputs run together. `connections`, `bodies` and
`memory` limit the resources that a client can hold; `metrics` counts. A family supplies a predictor
and its own settings; nothing here knows about models or tensors.
"""
