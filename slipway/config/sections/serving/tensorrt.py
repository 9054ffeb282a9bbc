"""`serving` of the container `tensorrt`: TensorRT."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Section


class TensorRTServing(Section):
    """Slipway's TensorRT container. It batches across requests and keeps a key/value cache."""

    container: Literal["tensorrt"] = Field(description="Container family.", examples=["tensorrt"])
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the engine's weights and cache.", examples=["fp16"]
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
        description="Largest number of sequences in one forward pass.",
        examples=[10],
    )
    max_batch_delay_milliseconds: int = Field(
        5,
        ge=0,
        le=1000,
        description="Longest time that a request waits for others to share its batch.",
        examples=[5],
    )
    max_queue_length: int = Field(
        256,
        ge=1,
        le=100_000,
        description="Largest number of requests that may wait. One more is answered 503.",
        examples=[256],
    )
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest prompt that is accepted, in tokens.", examples=[32]
    )
    max_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Largest number of tokens that one request may generate.",
        examples=[30],
    )
    default_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Tokens that are generated when a request does not name a number.",
        examples=[12],
    )
    request_timeout_seconds: int = Field(
        55,
        ge=1,
        le=60,
        description="A request without an answer by then is answered 504. SageMaker's own "
        "limit is 60.",
        examples=[55],
    )
