"""`serving` of the container `triton`: Triton."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Environment, ProjectPath, QueueLength, Section, Tokens


class TritonServing(Section):
    """NVIDIA's Triton, with Slipway's model of texts or with your own model repository."""

    container: Literal["triton"] = Field(description="Container family.", examples=["triton"])
    version: str = Field(
        pattern=r"^[0-9]{2}\.[0-9]{2}$",
        description="Release of AWS's image, `YY.MM`. Slipway's own image is built on it.",
        examples=["25.09"],
    )
    repository: ProjectPath | None = Field(
        None,
        description="Directory of your own model repository: `MODEL/config.pbtxt`, "
        "`MODEL/1/`. AWS's image serves it unchanged. Without it, Slipway's image serves a model "
        "of the family `t5`.",
        examples=["triton/t5-spelling"],
    )
    default_model: str | None = Field(
        None,
        pattern=r"^[\w.-]+$",
        max_length=255,
        description="Model that answers, if your own repository has several.",
        examples=["spelling"],
    )
    backend: Literal["tensorrt", "onnxruntime", "python"] = Field(
        "tensorrt",
        description="Program that runs the graphs: TensorRT on a GPU, or ONNX Runtime on the "
        "processor. `python` is for a repository of your own.",
        examples=["tensorrt"],
    )
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the graphs.", examples=["fp16"]
    )
    max_batch_size: int = Field(
        8, ge=1, le=1024, description="Largest number of texts in one batch.", examples=[8]
    )
    max_batch_delay_microseconds: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="Longest time that a request waits for others. With 0 a batch takes the "
        "requests that are there.",
        examples=[0],
    )
    max_queue_length: QueueLength = Field(
        256,
        description="Largest number of requests that may wait. Further ones are answered 503.",
        examples=[256],
    )
    instance_group_count: int = Field(
        1,
        ge=1,
        le=64,
        description="Copies of the model on one GPU, or on the instance where it has none.",
        examples=[1],
    )
    max_input_tokens: Tokens | None = Field(
        None,
        description="Longest text that is accepted, in tokens. Slipway's model needs it.",
        examples=[64],
    )
    max_new_tokens: Tokens | None = Field(
        None,
        description="Largest number of tokens that one request may generate. Slipway's model "
        "needs it.",
        examples=[64],
    )
    shared_memory_bytes: int | None = Field(
        None,
        ge=1_048_576,
        le=17_179_869_184,
        description="Shared memory of each copy of a model of the Python backend: "
        "`SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE`. Without it, Slipway computes it from the batch "
        "and the lengths, and a repository of your own gets the image's 16 MiB.",
        examples=[67_108_864],
    )
    log_verbose: bool = Field(
        False,
        description="Whether Triton writes its verbose log, with a line or more for each request.",
        examples=[False],
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=90,
        description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )
