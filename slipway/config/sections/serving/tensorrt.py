"""`serving` of the container `tensorrt`: TensorRT."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section, Tokens
from slipway.config.sections.serving.shared import (
    MAX_BATCH_DELAY_MILLISECONDS,
    MAX_QUEUE_LENGTH,
    REQUEST_TIMEOUT_SECONDS,
    TASK_MEANING,
    EncoderBatchSize,
    SequenceLength,
    SequenceLengths,
    Task,
)


def _is_none(value: object) -> bool:
    return value is None


class TensorRTServing(Section):
    """Slipway's TensorRT container, for GPT-2 and for encoders such as BERT."""

    container: Literal["tensorrt"] = Field(description="Container family.", examples=["tensorrt"])
    # The fields of encoders are younger than the first locks, whose digests are of the values.
    task: Task | None = Field(
        None, exclude_if=_is_none, description=TASK_MEANING, examples=["question-answering"]
    )
    sequence_length: SequenceLength | None = Field(
        None,
        exclude_if=_is_none,
        description="Longest text of an encoder, in tokens. Shorter texts are padded to it.",
        examples=[128],
    )
    sequence_lengths: SequenceLengths | None = Field(
        None,
        exclude_if=_is_none,
        description="Buckets of an encoder: a profile of its engine for each of these lengths, "
        "ascending up to `sequence_length`. Texts are padded to the shortest that they fit. "
        "Without it there is one.",
        examples=[[32, 128]],
    )
    batch_size: EncoderBatchSize = Field(
        1,
        exclude_if=lambda value: value == 1,
        description="Largest number of sequences in one batch of an encoder.",
        examples=[6],
    )
    dtype: Literal["fp32", "fp16", "int8"] = Field(
        "fp16",
        description="Precision of the engine's weights and cache. On processors, a model runs in "
        "`fp32`, or with weights in `int8`, which publishing compares with fp32.",
        examples=["fp16"],
    )
    tensorrt_version: Literal["10.4", "10.13"] | None = Field(
        None,
        description="TensorRT release of the image. Without it: the newest that supports the "
        "GPU. V100 (`ml.p3`) needs 10.4, because TensorRT 10.5 removed it.",
        examples=["10.13"],
    )
    max_batch_size: int = Field(
        8,
        ge=1,
        le=256,
        description="Largest number of sequences in one forward pass of GPT-2.",
        examples=[10],
    )
    max_batch_delay_milliseconds: int = MAX_BATCH_DELAY_MILLISECONDS
    max_queue_length: int = MAX_QUEUE_LENGTH
    max_input_tokens: Tokens | None = Field(
        None,
        description="Longest prompt that is accepted, in tokens.",
        examples=[32],
    )
    max_new_tokens: Tokens | None = Field(
        None,
        description="Largest number of tokens that one request may generate.",
        examples=[30],
    )
    default_new_tokens: Tokens | None = Field(
        None,
        description="Tokens that are generated when a request does not name a number.",
        examples=[12],
    )
    request_timeout_seconds: int = REQUEST_TIMEOUT_SECONDS
