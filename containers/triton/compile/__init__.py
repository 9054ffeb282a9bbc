"""`python -m containers.triton compile`: a T5 checkpoint becomes a model directory.

It follows `containers.tensorrt.compile`, whose `job`, `stages`, `gpu`, `profiles` and
`engine_builder` it shares. `checkpoint` is the program: it checks the job's input,
and may not import torch, onnx or TensorRT. `worker` is its child: it loads, exports, verifies and
builds. Only `model` imports torch.

The job has a Python of its own in the image, so these modules need not keep to Python 3.10.
"""
