"""`python -m containers.tensorrt compile`: a checkpoint becomes a model directory.

Two processes, see `containers.jobs`. `command` is the program: it checks what the job was given; it
may not import torch, onnx or TensorRT. `worker` is its child: it loads, exports, verifies and
builds, and may write into its scratch directory only.

`job` and `checkpoint` read what there is to compile, `model` is what takes torch, `engine_builder`
and `gpu` are all that touches TensorRT and CUDA.
"""
