"""Turns Hugging Face language models into the ONNX graphs that Slipway's containers run.

Only exporting needs torch, transformers, onnx and onnxscript (`pip install -r
requirements-export.txt`): no module that serves imports this package.

- `gpt2`: exports a decoder-only model as one step graph, and defines the graph's contract.
- `t5`: exports an encoder-decoder model as an encoder graph and a decoder step graph, and defines
  their contract.
- `graph_files`: the shared parts of every export: tracing, names, the same bytes on every machine,
  and a separate file for large weights.
- `decoding`: runs such graphs step by step with ONNX Runtime, as simple as possible.
- `parity`: checks that a graph computes the same as its model.
"""
