"""The module that is compiled: an encoder with its head. Imports torch.

Its inputs and outputs are tensors.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from containers.encoders.manifest import EMBEDDINGS, INPUT_NAMES, QUESTION_ANSWERING

# Model types whose texts have no token types.
_WITHOUT_TYPES = ("distilbert", "roberta", "xlm-roberta")


class EncoderModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """An encoder as runtimes take it: the manifest's inputs in order, its outputs as a tuple."""

    def __init__(self, model: PreTrainedModel, task: str, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._inputs = inputs

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output = self.model(**dict(zip(self._inputs, tensors, strict=True)), return_dict=True)
        if self._task == QUESTION_ANSWERING:
            return (output.start_logits, output.end_logits)
        if self._task == EMBEDDINGS:
            return (output.last_hidden_state,)
        return (output.logits,)


def input_names(model: PreTrainedModel) -> tuple[str, ...]:
    if model.config.model_type in _WITHOUT_TYPES:
        return INPUT_NAMES[:2]
    return INPUT_NAMES


def example_inputs(inputs: tuple[str, ...], *, rows: int, columns: int) -> tuple[torch.Tensor, ...]:
    """Returns inputs to trace with; half of each row is padding, so that the mask matters."""
    tensors = {name: torch.zeros(rows, columns, dtype=torch.int64) for name in inputs}
    tensors["input_ids"] += torch.arange(columns) % 7
    tensors["attention_mask"][:, : max(1, columns // 2)] = 1
    return tuple(tensors[name] for name in inputs)
