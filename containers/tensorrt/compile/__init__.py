"""`python -m containers.tensorrt compile`: a checkpoint becomes a model directory.

Two processes. `command` is the program: it checks what the job was given, starts `worker`, and
moves what that made into place; it may not import torch, onnx or TensorRT. `worker` is its child:
it loads, exports, verifies and builds, and may write into its scratch directory only.

So a stop or a lack of memory ends the child at any point, in the middle of a call into a library
too, and the program lives to say why and to clear away what was half done.

`job` and `checkpoint` read what there is to compile, `model` is what takes torch, `engine_builder`
and `gpu` are all that touches TensorRT and CUDA. It runs as a SageMaker training job does, see
https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html
"""
