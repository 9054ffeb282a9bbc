"""The model config: what one YAML file may say.

Every field has a description and an example; the reference page and the editor schema come from
them. Durations, sizes and counts carry their unit in the name. Limits are SageMaker's own
(botocore's model of the API) unless the description says otherwise. A model is frozen: what
deployment makes of it is a `DeploymentPlan`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from slipway.errors import nearest
from slipway.facts.instances import instance_types

# One deployment's name becomes a construct id, a stack and an endpoint (63 characters together with
# `-ENVIRONMENT`, SageMaker's limit for endpoint names).
NAME_PATTERN = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
RESERVED_NAMES = ("foundation",)
RESERVED_PREFIX = "image-"
RESERVED_TAG_PREFIXES = ("slipway:", "aws:")

# CloudWatch Logs takes these numbers of days and no others.
LOG_RETENTION_DAYS = (
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
)  # fmt: skip


def _known_instance_type(value: str) -> str:
    known = instance_types()
    if value in known:
        return value
    raise PydanticCustomError(
        "unknown_instance_type",
        "unknown instance type",
        {"nearest": nearest(value, known), "known": len(known)},
    )


def _free_name(value: str) -> str:
    if value in RESERVED_NAMES or value.startswith(RESERVED_PREFIX):
        raise PydanticCustomError("reserved_name", "the name belongs to one of Slipway's stacks")
    return value


def _project_path(value: str) -> str:
    if value.startswith(("/", "~")) or ".." in re.split(r"[/\\]", value):
        raise PydanticCustomError("project_path", "the path leads out of the project")
    return value


def _free_tag(value: str) -> str:
    if value.startswith(RESERVED_TAG_PREFIXES):
        raise PydanticCustomError("reserved_tag", "the tag belongs to Slipway or to AWS")
    return value


def _log_retention(value: Any) -> Any:
    if isinstance(value, int) and value not in LOG_RETENTION_DAYS:
        raise PydanticCustomError("log_retention", "not one of CloudWatch's retention periods")
    return value


Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=40), AfterValidator(_free_name)]
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def is_model_name(text: str) -> bool:
    """Whether a model may be called so."""
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


TagKey = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_free_tag)]
InstanceType = Annotated[str, AfterValidator(_known_instance_type)]
ProjectPath = Annotated[str, Field(min_length=1), AfterValidator(_project_path)]


class Section(BaseModel):
    """A part of the file: unknown fields are errors, "600" is not 600, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(Section):
    """The network itself."""

    family: Literal["gpt2"] = Field(description="Architecture of the network.", examples=["gpt2"])
    parameters: int = Field(
        gt=0,
        description="Number of weights of the released model, shown in plans and tags.",
        examples=[1_557_611_200],
    )


class TensorRTServing(Section):
    """Slipway's TensorRT container: batches across requests, keeps a key/value cache."""

    container: Literal["tensorrt"] = Field(description="Container family.", examples=["tensorrt"])
    max_batch_size: int = Field(
        8, ge=1, le=256,
        description="Most sequences in one forward pass.", examples=[10],
    )  # fmt: skip
    max_batch_delay_milliseconds: int = Field(
        5, ge=0, le=1000,
        description="Longest a request waits for others to share its batch with.", examples=[5],
    )  # fmt: skip
    max_queue_length: int = Field(
        256, ge=1, le=100_000,
        description="Requests that may wait; one more is answered 503.", examples=[256],
    )  # fmt: skip
    max_input_tokens: int = Field(
        ge=1, le=32_768, description="Longest prompt accepted, in tokens.", examples=[32]
    )
    max_new_tokens: int = Field(
        ge=1, le=32_768, description="Most tokens one request may generate.", examples=[30]
    )
    default_new_tokens: int = Field(
        ge=1, le=32_768,
        description="Tokens generated when a request does not say.", examples=[12],
    )  # fmt: skip
    request_timeout_seconds: int = Field(
        55, ge=1, le=60,
        description="A request not answered by then is answered 504. SageMaker's own limit is 60.",
        examples=[55],
    )  # fmt: skip


class SampleSource(Section):
    """A small model in this repository that the embedded AWS serves."""

    path: ProjectPath = Field(
        description="Directory with the model's files, relative to the project.",
        examples=["samples/gpt2-autocomplete/model"],
    )


class ReleaseSource(Section):
    """The compiled model that a real environment serves."""

    path: ProjectPath = Field(
        description="Directory with the engine, tokenizer and config, relative to the project.",
        examples=["build/gpt2-autocomplete/sm75"],
    )
    target: str = Field(
        pattern=r"^sm[0-9]{2,3}$",
        description="GPU compute capability the engine was built for; an engine runs on no other.",
        examples=["sm75"],
    )


class Artifacts(Section):
    """Where the model's files come from. An environment says which of the two it deploys."""

    sample: SampleSource = Field(description="Deployed where `artifacts: sample`, as in `local`.")
    release: ReleaseSource | None = Field(
        None, description="Deployed where `artifacts: release`. Without it only samples deploy."
    )


class Endpoint(Section):
    """What SageMaker runs."""

    instances: tuple[InstanceType, ...] = Field(
        min_length=1, max_length=1, strict=False,
        description="Hosting instance type. One for now: a fallback list is not supported yet.",
        examples=[["ml.g4dn.xlarge"]],
    )  # fmt: skip
    instance_count: int = Field(
        1, ge=1, le=1000,
        description="Instances at creation; with `autoscaling` the count moves from there.",
        examples=[2],
    )  # fmt: skip
    model_data_download_timeout_seconds: int = Field(
        600, ge=60, le=3600,
        description="Time an instance may take to download the artifact.", examples=[600],
    )  # fmt: skip
    container_startup_health_check_timeout_seconds: int = Field(
        600, ge=60, le=3600,
        description="Time the container may take until /ping answers 200.", examples=[600],
    )  # fmt: skip
    volume_size_gb: int | None = Field(
        None, ge=1, le=512,
        description="Size of the ML storage volume; only for instance types without local NVMe.",
        examples=[30],
    )  # fmt: skip
    network_isolation: bool = Field(
        True, description="The container can open no outbound connection.", examples=[True]
    )
    log_retention_days: Annotated[int, BeforeValidator(_log_retention)] = Field(
        30, description="How long the endpoint's log lines are kept.", examples=[30]
    )


class Autoscaling(Section):
    """Target tracking on invocations per instance."""

    min_instance_count: int = Field(ge=1, le=1000, description="Instances at rest.", examples=[1])
    max_instance_count: int = Field(
        ge=1, le=1000, description="Instances at most; also the cost's upper bound.", examples=[4]
    )
    target_invocations_per_instance_per_minute: float = Field(
        gt=0, allow_inf_nan=False,
        description=(
            "Load to hold each instance at: its highest rate per second x 0.5 for safety x 60."
        ),
        examples=[600],
    )  # fmt: skip
    scale_in_cooldown_seconds: int = Field(
        300, ge=0, le=3600, description="Pause after removing instances.", examples=[300]
    )
    scale_out_cooldown_seconds: int = Field(
        60, ge=0, le=3600, description="Pause after adding instances.", examples=[60]
    )


class Alarms(Section):
    """CloudWatch alarms, sent to the environment's notification topic."""

    server_error_rate_percent: float = Field(
        1.0, gt=0, le=100, allow_inf_nan=False,
        description="Share of invocations that fail on the server's side (5XX, no answer, broken "
        "connection) and raises the alarm.", examples=[1.0],
    )  # fmt: skip
    model_latency_p99_milliseconds: int = Field(
        gt=0, le=60_000,
        description="99th percentile of the container's answer time that raises the alarm.",
        examples=[600],
    )  # fmt: skip
    evaluation_periods_minutes: int = Field(
        3, ge=1, le=60,
        description="Minutes in a row over the threshold before the alarm is raised.", examples=[3],
    )  # fmt: skip


class ModelConfig(Section):
    """One deployment: one YAML file in model_configs/."""

    name: Name = Field(
        description="Same as the file's name; `cdk deploy NAME` deploys it.",
        examples=["gpt2-autocomplete"],
    )
    description: str = Field(
        "", max_length=256, description="One sentence for people.",
        examples=["Search autocomplete with GPT-2"],
    )  # fmt: skip
    model: Model
    serving: TensorRTServing
    artifacts: Artifacts
    endpoint: Endpoint
    autoscaling: Autoscaling | None = Field(
        None, description="Without it the instance count is fixed."
    )
    alarms: Alarms
    tags: dict[TagKey, Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, max_length=48,
        description=(
            "Added to every resource of the deployment, for cost allocation. AWS takes 50; two are "
            "Slipway's."
        ),
        examples=[{"team": "search"}],
    )  # fmt: skip
    environments: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="What is different in an environment: laid over the rest of the file before "
        "anything is checked. Mappings are merged, all else is replaced.",
        examples=[{"production": {"endpoint": {"instance_count": 4}}}],
    )
