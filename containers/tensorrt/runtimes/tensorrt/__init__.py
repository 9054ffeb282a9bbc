"""Runs an engine of the step graph with TensorRT; keys and values stay on the GPU.

Written against the interfaces of TensorRT 10.4 and 10.13 and of CUDA's Python bindings 12.9. It ran
on an H200 with TensorRT 10.6 and the bindings 13.3, see docs/fidelity.md. It needs `tensorrt` and
`cuda.bindings`, which the container's image has, so it is imported only to run an engine.

The family triton has a session of its own over the modules beside `session`.
"""
