"""`serving` of the container `neuron`: Neuron."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section
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


class NeuronServing(Section):
    """Slipway's container on AWS Inferentia and Trainium, for encoders such as BERT."""

    container: Literal["neuron"] = Field(description="Container family.", examples=["neuron"])
    framework: Literal["neuron", "neuronx"] = Field(
        description="`neuron` is for inf1, which AWS no longer develops. `neuronx` is for "
        "inf2 and trn1.",
        examples=["neuronx"],
    )
    task: Task = Field(description=TASK_MEANING, examples=["question-answering"])
    objective: Literal["throughput", "latency"] = Field(
        description="`throughput`: a copy on each core, with batches. `latency`: one model "
        "pipelined over cores (inf1).",
        examples=["throughput"],
    )
    sequence_length: SequenceLength = Field(
        description="Number of tokens that the graph is traced for. Shorter texts are padded "
        "to it.",
        examples=[128],
    )
    sequence_lengths: SequenceLengths | None = Field(
        None,
        description="Buckets: a graph for each of these lengths, ascending up to "
        "`sequence_length`. The shortest graph that a text fits computes it. Each"
        " graph has weights of its own. Without it there is one graph.",
        examples=[[32, 128]],
    )
    batch_size: EncoderBatchSize = Field(
        1, description="Number of sequences that the graph is traced for.", examples=[6]
    )
    max_batch_delay_milliseconds: int = MAX_BATCH_DELAY_MILLISECONDS
    pipeline_cores: int | None = Field(
        None,
        ge=1,
        le=64,
        description="NeuronCores of one pipeline. Without it: AWS's formula for the model's size.",
        examples=[16],
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Copies of the model. Without it: as many as the cores carry.",
        examples=[4],
    )
    expected_concurrency: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Requests in flight at a time. A pipeline needs twelve to be full.",
        examples=[12],
    )
    dtype: Literal["fp32", "bf16", "fp16"] = Field(
        "bf16",
        description="Precision that the compiler casts matrix products to.",
        examples=["bf16"],
    )
    max_queue_length: int = MAX_QUEUE_LENGTH
    request_timeout_seconds: int = REQUEST_TIMEOUT_SECONDS
