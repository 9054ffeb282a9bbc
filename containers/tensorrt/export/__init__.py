"""Turns Hugging Face language models into the ONNX graphs that our containers run.

Only people who export need torch, transformers, onnx and onnxscript
(`pip install -r requirements-export.txt`): nothing that serves imports this package.

- `gpt2`: a decoder-only model as one step graph; its contract is there.
- `t5`: an encoder-decoder model as an encoder graph and a decoder step graph; theirs is there.
- `graph_files`: what every export shares: tracing, names, bytes that are the same everywhere,
  weights beside a graph that they would make too large.
- `decoding`: greedy decoding over such graphs with ONNX Runtime, as plain as it can be.
- `parity`: whether a graph computes what its model computes.
"""

from containers.tensorrt.export.decoding import (
    EncoderDecoder,
    FloatArray,
    IntArray,
    encoder_decoder_greedy_tokens,
    greedy_tokens,
    left_padded,
    right_padded,
    run_decoder_step,
    run_encoder,
    run_step,
)
from containers.tensorrt.export.gpt2 import export_gpt2_step
from containers.tensorrt.export.graph_files import (
    EXTERNAL_DATA_THRESHOLD_BYTES,
    OPSET_VERSION,
    Precision,
    cache_names,
)
from containers.tensorrt.export.parity import (
    HALF_LOGIT_TOLERANCE,
    HALF_T5_LOGIT_TOLERANCE,
    LOGIT_TOLERANCE,
    Parity,
    ParityError,
    check_step_graph,
    check_t5_graphs,
)
from containers.tensorrt.export.t5 import (
    FEED_FORWARD_SCALE,
    export_t5_decoder_step,
    export_t5_encoder,
)
from containers.tensorrt.external_data import ExportError

__all__ = [
    "EXTERNAL_DATA_THRESHOLD_BYTES",
    "FEED_FORWARD_SCALE",
    "HALF_LOGIT_TOLERANCE",
    "HALF_T5_LOGIT_TOLERANCE",
    "LOGIT_TOLERANCE",
    "OPSET_VERSION",
    "EncoderDecoder",
    "ExportError",
    "FloatArray",
    "IntArray",
    "Parity",
    "ParityError",
    "Precision",
    "cache_names",
    "check_step_graph",
    "check_t5_graphs",
    "encoder_decoder_greedy_tokens",
    "export_gpt2_step",
    "export_t5_decoder_step",
    "export_t5_encoder",
    "greedy_tokens",
    "left_padded",
    "right_padded",
    "run_decoder_step",
    "run_encoder",
    "run_step",
]
