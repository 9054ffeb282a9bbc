"""The model config: what one YAML file may say.

Every field has a description and an example; the reference page and the editor schema come from
them. Durations, sizes and counts carry their unit in the name. Limits are SageMaker's own
(botocore's model of the API) unless the description says otherwise. A model is frozen: what
deployment makes of it is a `DeploymentPlan`. The sections are in `slipway/config/sections`.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from slipway.config.names import NAME_PATTERN
from slipway.config.sections.alarms import Alarms
from slipway.config.sections.artifacts import Artifacts
from slipway.config.sections.base import PlainText, Section, Tags
from slipway.config.sections.endpoint import Endpoint
from slipway.config.sections.model import Model
from slipway.config.sections.rollout import Rollout
from slipway.config.sections.scaling import Autoscaling
from slipway.config.sections.serving import Serving

RESERVED_NAMES = ("foundation",)
ARTIFACTS_PREFIX = "artifacts-"
RESERVED_PREFIXES = ("image-", ARTIFACTS_PREFIX)


def _free_name(value: str) -> str:
    if value in RESERVED_NAMES or value.startswith(RESERVED_PREFIXES):
        raise PydanticCustomError("reserved_name", "the name belongs to one of Slipway's stacks")
    return value


Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=40), AfterValidator(_free_name)]
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def is_model_name(text: str) -> bool:
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


class ModelConfig(Section):
    """One deployment: one YAML file in model_configs/."""

    name: Name = Field(
        description="Same as the file's name. `cdk deploy NAME` deploys it.",
        examples=["gpt2-autocomplete"],
    )
    description: PlainText = Field(
        "",
        max_length=256,
        description="One sentence for people.",
        examples=["Search autocomplete with GPT-2"],
    )
    adapter_of: str | None = Field(
        None,
        pattern=NAME_PATTERN,
        max_length=40,
        description="Base of a LoRA adapter: a model with `mode: scale_to_zero` whose copies load "
        "the adapter. The file then has `artifacts` and no sections of the base.",
        examples=["qwen2-7b-vllm"],
    )
    model: Model
    serving: Serving = Field(description="The container. Its key `container` says which.")
    artifacts: Artifacts = Field(default_factory=lambda: Artifacts.model_validate({}))
    endpoint: Endpoint
    autoscaling: Autoscaling | None = Field(
        None, description="Without it the number of instances is fixed."
    )
    alarms: Alarms
    rollout: Rollout = Field(
        Rollout.model_validate({}), description="Without it an update moves all traffic at once."
    )
    tags: Tags = Field(
        default_factory=dict,
        max_length=47,
        description="Tags of every resource of the deployment, for cost allocation. AWS "
        "allows 50, and Slipway sets two of its own.",
        examples=[{"team": "search"}],
    )
    environments: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Differences of an environment. They are laid over the rest of the file "
        "before anything is checked: mappings are merged, everything else is "
        "replaced.",
        examples=[{"production": {"endpoint": {"instance_count": 4}}}],
    )
