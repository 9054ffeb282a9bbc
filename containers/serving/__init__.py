"""The serving core that the families share: HTTP contract, dynamic batching, settings, logs.

One direction: `server` starts and drains the process, `app` speaks HTTP, `service` owns one
predictor, `batching` decides what runs together. A family supplies a `predictor.Predictor` and
its own settings; nothing here knows about models or tensors.
"""
