"""Checkpoints to graphs: ONNX for the CPU, and traces for torch-neuron and torch-neuronx.

Nothing that serves imports this. `modules` is what all of them compile, `onnx_graph` the CPU's.
"""
