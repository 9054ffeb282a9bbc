"""Turns Hugging Face language models into the ONNX graphs that Slipway's containers run.

Only exporting needs torch, transformers, onnx and onnxscript (`pip install -r
requirements-export.txt`): no module that serves imports this package. `gpt2` and `t5` define the
contracts of their graphs.
"""
