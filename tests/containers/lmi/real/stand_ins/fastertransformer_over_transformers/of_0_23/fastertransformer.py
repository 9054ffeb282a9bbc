"""Stands in for the FasterTransformer package of 0.23: in Triton, and in processes of MPI."""

from __future__ import annotations

from tests.containers.lmi.real.stand_ins.fastertransformer_over_transformers import t5


def init_inference(
    model: str,
    tensor_parallel_degree: int,
    pipeline_parallel_degree: int,
    dtype: str = "fp32",
    use_triton: bool | None = None,
    do_streaming: bool = False,
    is_peft: bool = False,
) -> t5.T5Model | t5.TritonModel:
    if do_streaming or is_peft:
        raise NotImplementedError("the stand-in has no streams and no adapters")
    loaded = t5.loaded(model, tensor_parallel_degree, pipeline_parallel_degree, dtype)
    return t5.TritonModel(loaded) if use_triton else t5.T5Model(loaded)
