"""TensorRT-LLM over transformers on the CPU: what AWS's handler of DJL Serving 0.33 uses of it.

The names, the fields, their types and the forms of answers are those of TensorRT-LLM 0.21
(github.com/NVIDIA/TensorRT-LLM and the API reference of 0.21.0rc1 on nvidia.github.io), which
`serving/docker/tensorrt-llm.Dockerfile` of 0.33.0 installs as 0.21.0rc1. Only that much is here.
What that release refuses is refused, with its words where the handler passes them on; what it takes
and is not here is refused too, by name.

An engine is a directory as `LLM.save` writes it, but for the engine itself: `rank0.engine` is the
checkpoint's model.safetensors, of a GPT-2. No engine is built.
"""
