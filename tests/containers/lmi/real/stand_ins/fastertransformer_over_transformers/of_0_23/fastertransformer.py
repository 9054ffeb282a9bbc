"""Stands in for the FasterTransformer package of 0.23: in Triton, and in processes of MPI."""

from tests.containers.lmi.real.stand_ins.fastertransformer_over_transformers import t5


def init_inference(
    model,
    tensor_parallel_degree,
    pipeline_parallel_degree,
    dtype="fp32",
    use_triton=None,
    do_streaming=False,
    is_peft=False,
):
    if do_streaming or is_peft:
        raise NotImplementedError("the stand-in has no streams and no adapters")
    loaded = t5.loaded(model, tensor_parallel_degree, pipeline_parallel_degree, dtype)
    return t5.TritonModel(loaded) if use_triton else t5.T5Model(loaded)
