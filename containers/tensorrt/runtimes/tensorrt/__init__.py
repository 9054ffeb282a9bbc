"""Runs an engine of the step graph with TensorRT, the keys and values staying on the GPU.

Written against the interfaces of TensorRT 10.4 and 10.13 and of CUDA's Python bindings 12.9; it
has never run on a GPU. Only `session` is for others: it needs `tensorrt` and `cuda.bindings`, which
the container's image has, so it is imported where there is an engine to run.

- `device_memory`: the GPU, its memory, and work in the order of one stream.
- `cache`: where keys and values lie, and how rows move.
- `engine`: an engine file, and all that is checked of it before it serves.
- `session`: the steps.
"""
