"""A BERT of `transformers` behind the serving core, one request at a time.

    python -m benchmarks.baselines.transformers_encoder

Server, requests, tokenizer and answers are the TensorRT container's, with the same environment
variables. The only differences: PyTorch computes, and a forward pass has one request. Its row is
not padded. PyTorch has a thread for each core, in inference mode, and attention is its fused one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertForQuestionAnswering

from benchmarks.baselines.torch_script import MODEL_FILE
from benchmarks.machine import core_count
from containers.encoders.compile.modules import EncoderModule
from containers.encoders.manifest import Manifest
from containers.encoders.session import Inputs, Outputs, warm_up
from containers.serving.logs import configure_logging
from containers.serving.server import run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings
from containers.tensorrt.encoder_predictor import SessionPredictor
from containers.tensorrt.settings import TensorRTSettings


class _TransformersSession:
    """A `containers.encoders.session.Session`; its weights are those of the traced model."""

    def __init__(self, model_dir: Path, manifest: Manifest) -> None:
        config = json.loads((model_dir / "config.json").read_text("utf-8"))
        model = BertForQuestionAnswering(BertConfig(**config))
        traced = torch.jit.load(str(model_dir / MODEL_FILE)).state_dict()
        model.load_state_dict({name: traced[f"model.{name}"] for name in model.state_dict()})
        self._module = EncoderModule(model, manifest.task, manifest.inputs).eval()
        self._manifest = manifest

    def run(self, inputs: Inputs) -> Outputs:
        rows = (torch.from_numpy(inputs[name]) for name in self._manifest.inputs)
        with torch.inference_mode():
            outputs = self._module(*rows)
        return {
            name: each.numpy() for name, each in zip(self._manifest.outputs, outputs, strict=True)
        }


class _TransformersPredictor(SessionPredictor):
    # Each thread that calls PyTorch would have a team of OpenMP threads that spin. So there is one.
    batches_ahead = 0

    @property
    def _takes_any_length(self) -> bool:
        return True

    def _start(self, model_dir: Path, manifest: Manifest) -> None:
        self._session = _TransformersSession(model_dir, manifest)
        warm_up(self._session, manifest)


def main() -> None:
    torch.set_num_threads(core_count())
    configure_logging("INFO", sys.stdout)
    reader = EnvironmentReader(os.environ)
    serving = ServingSettings.read(reader)
    settings = TensorRTSettings.read(reader)
    reader.finish()
    predictor = _TransformersPredictor(settings, max_batch_size=serving.max_batch_size)
    run_until_terminated(predictor, serving)


if __name__ == "__main__":
    main()
