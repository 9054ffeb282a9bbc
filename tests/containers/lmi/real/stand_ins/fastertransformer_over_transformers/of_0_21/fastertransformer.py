"""Stands in for the FasterTransformer package of 0.21, which knows no Triton."""

from __future__ import annotations

from tests.containers.lmi.real.stand_ins.fastertransformer_over_transformers import t5


def init_inference(
    model: str, tensor_parallel_degree: int, pipeline_parallel_degree: int, dtype: str = "fp32"
) -> t5.T5Model:
    return t5.T5Model(t5.loaded(model, tensor_parallel_degree, pipeline_parallel_degree, dtype))
