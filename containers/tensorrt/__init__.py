"""The TensorRT family: text generation from one ONNX step graph with a key/value cache.

`requests` parses what clients send, `generation` owns the decode loop, `runtimes` run single steps,
`model_directory` describes the files in /opt/ml/model, `predictor` joins them.

A model directory with encoder.json is an encoder's: `encoder_predictor` serves it with the tasks of
`containers.encoders`.
"""
