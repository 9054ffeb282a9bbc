"""The Triton container: a sequence-to-sequence model behind NVIDIA's server.

Triton forms the batches. `model` is what its Python back end loads: it turns texts into tokens, and
owns the decode loop of `decoding` over the encoder and the decoder step. `onnx_session` runs both
graphs on the CPU. `repository` writes the model repository.
"""
