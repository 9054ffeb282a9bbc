"""`python -m containers.tensorrt compile`: a checkpoint becomes a model directory.

Two processes, see `containers.jobs`. `command` is the program: it checks the job's input, and may
not import torch, onnx or TensorRT. `worker` is its child: it loads, exports, verifies and builds,
and may write into its scratch directory only.

Only `model` imports torch; only `engine_builder` and `gpu` use TensorRT and CUDA.

The family triton compiles too, with a `command`, `checkpoint`, `model` and `worker` of its own. It
shares the other modules: `job`, `stages`, `gpu`, `profiles` and `engine_builder`.
"""
