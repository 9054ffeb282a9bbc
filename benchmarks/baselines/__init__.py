"""The servers that Slipway is measured against, built with reasonable care.

`published` is the Flask application of the published GPT-2 case, `torch_script` a naive application
around a traced encoder; `stack` starts nginx and gunicorn around either. `static_batching` is the
TensorRT container without its continuous batching.
"""
