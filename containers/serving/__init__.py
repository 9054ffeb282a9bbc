"""The serving core that the families share: HTTP contract, dynamic batching, settings, logs.

Imports go one way: `program` reads the command line, `server` starts and drains the process, `app`
speaks HTTP, and `service` owns one predictor. `queued_batcher` keeps the queue; `batching` and
`continuous` decide which inputs run together. `connections` and `memory` limit the resources that a
client can hold; `metrics` counts. A family supplies a predictor and its own settings. These modules
know nothing about models or tensors.

Beside them are the readers of a model directory: `model_files`, `json_files` and `onnx_session`.
"""
