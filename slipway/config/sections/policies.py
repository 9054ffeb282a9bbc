"""`policies` of environments.yaml: what a plan must meet before it is deployed."""

import fnmatch
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from slipway.config.sections.base import Section, TagKey
from slipway.errors import did_you_mean
from slipway.facts.instances import instance_types


def _matches_a_type(pattern: str) -> str:
    known = instance_types()
    if not fnmatch.filter(known, pattern):
        families = {f"{name.rpartition('.')[0]}.*" for name in known}
        hints = {"hint": did_you_mean(pattern, sorted({*families, *known})), "known": len(known)}
        raise PydanticCustomError("unknown_instance_type", "no type matches", hints)
    return pattern


_Type = Annotated[str, AfterValidator(_matches_a_type)]
_Region = Annotated[str, Field(pattern=r"^[a-z*?][a-z0-9*?-]*$")]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=40)]
_Function = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]


class Policies(Section):
    """Conditions that the plan of every model must meet. What is left out asks for nothing."""

    max_cost_per_hour_usd: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Most that a model may cost an hour: the most instances, each of the dearest "
        "type of its pool, with their volumes. A model without a known price is refused.",
        examples=[20],
    )
    required_tags: tuple[TagKey, ...] = Field(
        (), strict=False, description="Tags that every model must have.", examples=[["team"]]
    )
    allowed_instance_types: tuple[_Type, ...] | None = Field(
        None,
        min_length=1,
        strict=False,
        description="The types that endpoints may have, as names or patterns with `*`.",
        examples=[["ml.g5.*"]],
    )
    allowed_regions: tuple[_Region, ...] | None = Field(
        None,
        min_length=1,
        strict=False,
        description="The regions that models may be deployed to, as names or patterns with `*`.",
        examples=[["eu-*"]],
    )
    image_digests: bool = Field(
        False,
        description="Refuses an `image_uri` with a tag, which can move: it must have a digest.",
        examples=[True],
    )
    network_isolation: bool = Field(
        False,
        description="Refuses a model whose container can open connections.",
        examples=[True],
    )
    own: dict[_Name, _Function] = Field(
        default_factory=dict,
        description="Policies of your own: a name, and a function as `module:function`. The "
        "module is a file of the project, or of an installed package.",
        examples=[{"office-hours": "our_policies:office_hours"}],
    )


NO_POLICIES = Policies.model_validate({})
