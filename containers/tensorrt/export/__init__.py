"""Turns Hugging Face language models into the ONNX graphs that Slipway's containers run.

Only exporting needs torch, transformers, onnx and onnxscript (`pip install -r
requirements-export.txt`): no module that serves imports this package.

- `gpt2`: exports a decoder-only model as one step graph, and defines the graph's contract.
- `t5`: exports an encoder-decoder model as an encoder graph and a decoder step graph, and defines
  their contract.
- `graph_files`: the shared parts of every export: tracing, names, the same bytes on every machine,
  and a separate file for large weights.
- `decoding`: runs such graphs step by step with ONNX Runtime, as simple as possible.
- `parity`: checks that a graph computes the same as its model.
"""

from containers.tensorrt.export.decoding import (
    EncoderDecoder,
    FloatArray,
    IntArray,
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
from containers.tensorrt.stepping import cache_names

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
    "export_gpt2_step",
    "export_t5_decoder_step",
    "export_t5_encoder",
    "left_padded",
    "right_padded",
    "run_decoder_step",
    "run_encoder",
    "run_step",
]
