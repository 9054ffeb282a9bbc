"""The Triton container: a sequence-to-sequence model behind NVIDIA's server.

Triton forms the batches. `model` is what its Python back end loads. It turns texts into tokens, and
owns the decode loop of `decoding` over the encoder and the decoder step. `sessions` opens a runtime
for both graphs: `onnx_session` on the CPU, or `tensorrt_session` on a GPU.
`repository` writes the model repository. `compile` makes the model directory of a T5 checkpoint.
"""
