"""The shared parts of the jobs that compile encoders; each family has a program and a worker.

`checkpoint` checks the input for the hyperparameters in `job`, without a framework. `model` loads
the checkpoint, `modules` defines the module that every target compiles, `onnx_graph` traces it, and
`parity` compares a graph with it. Those four import torch. They keep to Python 3.10, and to the
interfaces that transformers 4.40 and 5 share.
"""
