"""The TensorRT family: text generation from one ONNX step graph with a key/value cache.

`requests` reads what clients send, `generation` owns the decode loop, `runtimes` run single
steps, `model_directory` knows what lies in /opt/ml/model, `predictor` joins them.
"""
