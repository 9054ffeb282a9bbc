"""`serving` of the container `triton`: Triton."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import Environment, ProjectPath, Section


class TritonServing(Section):
    """AWS's Triton image, with a model repository that Slipway generates."""

    container: Literal["triton"] = Field(description="Container family.", examples=["triton"])
    version: str = Field(
        pattern=r"^[0-9]{2}\.[0-9]{2}$",
        description="Release of the image, `YY.MM`.",
        examples=["25.09"],
    )
    repository: ProjectPath | None = Field(
        None,
        description="Directory of your own model repository: `MODEL/config.pbtxt`, "
        "`MODEL/1/`. Without it Slipway makes one for the model's family. That "
        "exists for `t5`.",
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
        "tensorrt", description="Backend that runs the graphs.", examples=["tensorrt"]
    )
    dtype: Literal["fp32", "fp16"] = Field(
        "fp16", description="Precision of the graphs.", examples=["fp16"]
    )
    max_batch_size: int = Field(
        8, ge=1, le=1024, description="Largest number of requests in one batch.", examples=[8]
    )
    max_batch_delay_microseconds: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="Longest time that a request waits for others. With 0 a batch takes the "
        "requests that are there.",
        examples=[0],
    )
    instance_group_count: int = Field(
        1, ge=1, le=64, description="Copies of the model on one GPU.", examples=[1]
    )
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest text that is accepted, in tokens.", examples=[64]
    )
    max_new_tokens: int = Field(
        ge=1,
        le=32_768,
        description="Largest number of tokens that one request may generate.",
        examples=[64],
    )
    shared_memory_bytes: int = Field(
        67_108_864,
        ge=1_048_576,
        le=17_179_869_184,
        description="Shared memory of the Python backend: "
        "`SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE`.",
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
