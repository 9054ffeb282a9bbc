"""Fields that several containers share: precision, batches, queue, time of a request, encoders."""

from typing import Annotated, Any, Literal

from pydantic import Field

Dtype = Literal["fp32", "fp16", "bf16", "int8", "fp8"]
# `auto` is the checkpoint's own.
LmiDtype = Literal["auto", "fp32", "fp16", "bf16", "int8", "fp8"]
# Any: pydantic gives each section a copy, with the section's own annotation.
MAX_BATCH_DELAY_MILLISECONDS: Any = Field(
    5,
    ge=0,
    le=1000,
    description="Longest time that a request waits for others to share its batch.",
    examples=[5],
)
MAX_QUEUE_LENGTH: Any = Field(
    256,
    ge=1,
    le=100_000,
    description="Largest number of requests that may wait. One more is answered 503.",
    examples=[256],
)
REQUEST_TIMEOUT_SECONDS: Any = Field(
    55,
    ge=1,
    le=60,
    description="A request without an answer by then is answered 504. SageMaker's own limit is 60.",
    examples=[55],
)
Task = Literal[
    "question-answering", "sequence-classification", "token-classification", "embeddings"
]
SequenceLength = Annotated[int, Field(ge=8, le=4096)]
SequenceLengths = Annotated[
    tuple[SequenceLength, ...], Field(min_length=1, max_length=16, strict=False)
]
EncoderBatchSize = Annotated[int, Field(ge=1, le=1024)]
TASK_MEANING = "Task of the model. It decides what requests and answers look like."
