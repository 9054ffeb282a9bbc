"""Checkpoints to graphs: ONNX for the CPU. Nothing traces for torch-neuron or torch-neuronx yet.

Nothing that serves imports this. `modules` is what every target compiles, `onnx_graph` the CPU's.
"""
