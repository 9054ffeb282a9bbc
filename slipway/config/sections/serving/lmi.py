"""`serving` of the container `lmi`: LMI."""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from slipway.config.sections.base import Environment, ProjectPath, QueueLength, Section
from slipway.config.sections.serving.shared import LmiDtype

OptionValue = str | int | float | bool


ALL_ACCELERATORS = 0
"""The value of `tensor_parallel_degree: max`, until planning puts the number in its place."""


def _degree(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str) and value != "max":
        raise PydanticCustomError("degree", "neither a number nor `max`")
    return ALL_ACCELERATORS if value == "max" else check(value)


def _is_scalar(value: Any) -> Any:
    # A union would be refused once for each of its members.
    if not isinstance(value, str | int | float | bool):
        raise PydanticCustomError("option_value", "not a value that a line of a file can hold")
    return value


class LmiServing(Section):
    """AWS's DJL Large Model Inference images: FasterTransformer, DeepSpeed, vLLM, TensorRT-LLM."""

    container: Literal["lmi"] = Field(description="Container family.", examples=["lmi"])
    framework: Literal[
        "djl-fastertransformer", "djl-deepspeed", "djl-neuronx", "djl-tensorrtllm", "djl-lmi"
    ] = Field(
        description="Which of the images. AWS still develops `djl-lmi`, which has vLLM.",
        examples=["djl-lmi"],
    )
    version: str = Field(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description="DJL Serving's version, as it stands in the image's tag.",
        examples=["0.36.0"],
    )
    image: Literal["managed", "built"] = Field(
        "managed",
        description="`managed` is AWS's image. `built` is an image on top of it with "
        "Slipway's handlers for FasterTransformer and DeepSpeed. They answer in "
        "place of AWS's handlers.",
        examples=["managed"],
    )
    configuration: Literal["file", "environment"] = Field(
        "file",
        # Younger than the first locks, whose digests are of the section's values.
        exclude_if=lambda value: value == "file",
        description="Where the container finds its settings. `file`: in serving.properties of"
        " the published package. The container itself copies the weights. "
        "`environment`: in variables (`OPTION_...`, `SERVING_...`). SageMaker "
        "brings the weights, so that the network may be isolated. Only for "
        "`djl-lmi` and `djl-tensorrtllm` from 0.28.",
        examples=["environment"],
    )
    engine: str | None = Field(
        None,
        min_length=1,
        description="DJL engine, in the version's own spelling. Without it: the framework's "
        "engine.",
        examples=["FasterTransformer"],
    )
    entry_point: str | None = Field(
        None,
        min_length=1,
        description="Built-in handler, `option.entryPoint`. Without it: the engine's handler.",
        examples=["djl_python.huggingface"],
    )
    script: ProjectPath | None = Field(
        None,
        description="Directory with your own model.py, in place of a built-in handler. With "
        "`entry_point`, from 0.29 on, the model.py has formatters for that handler.",
        examples=["handlers/flan-t5"],
    )
    requirements: ProjectPath | None = Field(
        None,
        # Younger than the first locks, whose digests are of the section's values.
        exclude_if=lambda value: value is None,
        description="Directory with a requirements.txt for a built-in handler. The server installs "
        "the packages when it starts. A `script` has its own.",
        examples=["handlers/codegen"],
    )
    tensor_parallel_degree: Annotated[
        Annotated[int, Field(ge=1, le=1024)],
        WrapValidator(_degree),
        WithJsonSchema(
            {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1024}, {"const": "max"}]}
        ),
    ] = Field(
        1,
        description="Number of accelerators that one copy of the model is spread over. `max`: all "
        "accelerators of the preferred instance type.",
        examples=[4],
    )
    pipeline_parallel_degree: int = Field(
        1, ge=1, le=1024, description="Number of pipeline stages of one copy.", examples=[1]
    )
    dtype: LmiDtype = Field(
        description="Precision that the weights are loaded in. `auto`: the handler takes the "
        "checkpoint's own, and 2 bytes for a checkpoint in fp32. A model.py is told nothing.",
        examples=["fp16"],
    )
    max_batch_size: int = Field(
        1,
        ge=1,
        le=1024,
        description="Largest number of requests that DJL Serving hands to the handler together.",
        examples=[4],
    )
    max_batch_delay_milliseconds: int = Field(
        100,
        ge=0,
        le=60_000,
        description="Longest time that a request waits for others.",
        examples=[100],
    )
    max_queue_length: QueueLength = Field(
        1000,
        description="Largest number of requests that may wait: `job_queue_size`.",
        examples=[1000],
    )
    rolling_batch: str | None = Field(
        None,
        min_length=1,
        description="Continuous batching: `option.rolling_batch`, as the version knows it.",
        examples=["vllm"],
    )
    max_rolling_batch_size: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Largest number of sequences in a rolling batch.",
        examples=[32],
    )
    max_input_tokens: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Longest prompt, for the memory estimate.",
        examples=[512],
    )
    max_new_tokens: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Most tokens generated, for the memory estimate.",
        examples=[128],
    )
    predict_timeout_seconds: int = Field(
        60,
        ge=1,
        le=3600,
        description="Time limit of one request in the handler: `option.predict_timeout`.",
        examples=[60],
    )
    model_loading_timeout_seconds: int | None = Field(
        None,
        ge=1,
        le=3600,
        description="Time limit of loading: `option.model_loading_timeout`. Without it: "
        "`endpoint.container_startup_health_check_timeout_seconds`, which is what"
        " SageMaker gives the start.",
        examples=[1200],
    )
    trust_remote_code: bool = Field(
        False,
        description="Lets the checkpoint's own Python code run in the container.",
        examples=[False],
    )
    options: dict[str, Annotated[OptionValue, BeforeValidator(_is_scalar)]] = Field(
        default_factory=dict,
        description="Further `option.KEY` of serving.properties, and keys of the server such as "
        "`load_on_devices`. They are checked against the version.",
        examples=[{"gpu_memory_utilization": 0.9}],
    )
    environment: Environment = Field(
        default_factory=dict,
        max_length=90,
        description="Variables of the container.",
        examples=[{"OMP_NUM_THREADS": "1"}],
    )
