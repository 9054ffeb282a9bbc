"""Stands in for the FasterTransformer package of 0.21, which knows no Triton.

The image was built with whatever the package was that day. Here it is that of 3 March 2023. Before,
it passed no parameter on; before 24 February 2023 its answers were a list in a list.
"""

from tests.containers.lmi.real.stand_ins.fastertransformer_over_transformers import t5


def init_inference(model, tensor_parallel_degree, pipeline_parallel_degree, dtype="fp32"):
    return t5.T5Model(t5.loaded(model, tensor_parallel_degree, pipeline_parallel_degree, dtype))
