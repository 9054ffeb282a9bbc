"""Values of the fields that the containers of encoders share."""

from typing import Annotated, Literal

from pydantic import Field

Task = Literal[
    "question-answering", "sequence-classification", "token-classification", "embeddings"
]
SequenceLength = Annotated[int, Field(ge=8, le=4096)]
SequenceLengths = Annotated[
    tuple[SequenceLength, ...], Field(min_length=1, max_length=16, strict=False)
]
EncoderBatchSize = Annotated[int, Field(ge=1, le=1024)]
TASK_MEANING = "Task of the model. It decides what requests and answers look like."
