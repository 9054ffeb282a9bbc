"""`endpoint.scale_to_zero`: how copies of the model follow the load, down to none."""

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.names import NAME_PATTERN
from slipway.config.sections.base import Count, CountFromZero, PauseSeconds, Section, Target
from slipway.config.sections.scaling import Times


class CopySchedule(Times):
    """Other bounds of the copies at certain times."""

    min_copies: CountFromZero = Field(
        description="Copies at rest from then on. With 1 or more, the endpoint wakes then and "
        "stays awake.",
        examples=[1],
    )
    max_copies: Count = Field(description="Copies at most from then on.", examples=[4])

    @property
    def bounds(self) -> tuple[int, int]:
        return self.min_copies, self.max_copies


class Consolidation(Section):
    """SageMaker moves copies together, and releases the instances that they leave."""

    max_step_size: int = Field(
        1, ge=1, le=100, description="Instances that are released at a time.", examples=[1]
    )
    cooldown_minutes: int = Field(
        20,
        ge=5,
        le=1440,
        description="Pause after the endpoint's last change.",
        examples=[20],
    )


class ScaleToZero(Section):
    """An inference component: without requests there is no instance, and nothing is billed."""

    endpoint_of: str | None = Field(
        None,
        pattern=NAME_PATTERN,
        max_length=40,
        description="Model on whose endpoint the copies run, so that both models share its "
        "instances. The other model has `mode: scale_to_zero` and the same `instances`. Without "
        "it the model has an endpoint of its own.",
        examples=["gpt2-autocomplete"],
    )
    max_copies: Count = Field(
        description="Most copies of the model. With the schedules it is the upper bound of the "
        "cost.",
        examples=[4],
    )
    min_copies: CountFromZero = Field(
        0,
        description="Fewest copies. With 1 or more the model never sleeps, and the instances of "
        "these copies are always billed.",
        examples=[1],
    )
    min_instance_count: CountFromZero = Field(
        0,
        description="Fewest instances. They run, and are billed, without copies too, so a wake "
        "waits for a copy alone. Set 1 where SageMaker refuses 0.",
        examples=[1],
    )
    consolidation: Consolidation | None = Field(
        None,
        description="Without it, only instances without copies are released.",
    )
    placement_strategy: Literal["spread", "binpack"] | None = Field(
        None,
        description="Whether copies are spread over the instances, or packed onto few. Without it "
        "SageMaker chooses.",
        examples=["spread"],
    )
    max_zone_imbalance: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Copies that one availability zone may have more than another. SageMaker "
        "balances the zones before it looks at `placement_strategy`, which this field needs. "
        "Without it: 0.",
        examples=[1],
    )
    cache_model: bool | None = Field(
        None,
        description="Whether each instance keeps the model data and the image, so that its next "
        "copy starts without a download. Without it SageMaker does so on types with more than 232 "
        "GiB of local NVMe disk.",
        examples=[True],
    )
    target_concurrent_requests_per_copy: Target | None = Field(
        None,
        description="Requests in flight to hold each copy at. It reacts within seconds.",
        examples=[5],
    )
    target_invocations_per_copy_per_minute: Target | None = Field(
        None,
        description="Requests a minute to hold each copy at.",
        examples=[600],
    )
    accelerators_per_copy: int | None = Field(
        None,
        ge=1,
        le=64,
        description="Accelerators that one copy gets. Without it: all of an instance.",
        examples=[1],
    )
    vcpus_per_copy: float | None = Field(
        None,
        ge=0.25,
        allow_inf_nan=False,
        description="Virtual processors that are reserved for one copy. Without it: three quarters "
        "of an instance without accelerators, and none beside accelerators.",
        examples=[4],
    )
    copy_memory_mib: int = Field(
        1024,
        ge=128,
        description="Main memory that is reserved for one copy. It is no limit: a copy may use "
        "more. SageMaker keeps a part of each instance's memory, and refuses a copy that asks for "
        "too much.",
        examples=[1024],
    )
    max_copy_memory_mib: int | None = Field(
        None,
        ge=128,
        description="Most main memory of one copy. Without it SageMaker sets no limit.",
        examples=[4096],
    )
    scale_in_cooldown_seconds: PauseSeconds = Field(
        300, description="Pause after removing copies.", examples=[300]
    )
    scale_out_cooldown_seconds: PauseSeconds = Field(
        60, description="Pause after adding copies.", examples=[60]
    )
    schedules: Annotated[tuple[CopySchedule, ...], Field(strict=False)] = Field(
        (), max_length=20, description="Other bounds of the copies at certain times."
    )

    @property
    def smallest_count(self) -> int:
        return min([self.min_copies, *(each.min_copies for each in self.schedules)])

    @property
    def largest_count(self) -> int:
        return max([self.max_copies, *(each.max_copies for each in self.schedules)])

    @property
    def alarming_count(self) -> int:
        """Returns the copies at their maximum, which schedules set if there are any."""
        return max((each.max_copies for each in self.schedules), default=self.max_copies)
