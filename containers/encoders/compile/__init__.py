"""The shared parts of the jobs that compile encoders; each family has a program and a worker.

`checkpoint` checks the input for the hyperparameters in `job`, without a framework. `modules` loads
the checkpoint and defines the module that every target compiles, and `parity` compares a graph with
it. Both import torch. They keep to Python 3.10, and to the interfaces that transformers 4.40 and 5
share.
"""
