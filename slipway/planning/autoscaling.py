"""How the fleets of a deployment follow the load."""

from dataclasses import dataclass

from slipway.config.sections.scaling import Autoscaling
from slipway.planning.schedules import SchedulePlan


@dataclass(frozen=True)
class StepPlan:
    """A larger step of a fleet that is far above its target.

    Args:
        from_times_target: load of an instance from which it applies, as a multiple of the target.
        add_instances: how many.
    """

    from_times_target: float
    add_instances: int


@dataclass(frozen=True)
class AutoscalingPlan:
    """Target tracking of every variant; one of the targets is set. Steps are ascending."""

    min_instance_count: int
    max_instance_count: int
    target_invocations_per_instance_per_minute: float | None
    target_concurrent_requests_per_instance: float | None
    scale_in_cooldown_seconds: int
    scale_out_cooldown_seconds: int
    schedules: tuple[SchedulePlan, ...] = ()
    steps: tuple[StepPlan, ...] = ()
    target_backlog_per_instance: float | None = None
    target_gpu_utilization_percent: float | None = None

    @property
    def wakes(self) -> bool:
        """Whether the fleet may have no instances, so that a waiting request must start one."""
        return 0 in (self.min_instance_count, *(s.min_instance_count for s in self.schedules))

    @property
    def step_policy_count(self) -> int:
        """Returns how many step policies a variant has, each with an alarm."""
        return bool(self.steps) + self.wakes

    @property
    def target_value(self) -> float:
        """Returns the target that is set, in its field's unit."""
        targets = (
            self.target_invocations_per_instance_per_minute,
            self.target_concurrent_requests_per_instance,
            self.target_backlog_per_instance,
            self.target_gpu_utilization_percent,
        )
        return next(target for target in targets if target is not None)

    @property
    def alarming_count(self) -> int:
        """Returns the size of a fleet at its maximum, which schedules set if there are any."""
        return max((s.max_instance_count for s in self.schedules), default=self.max_instance_count)


def autoscaling_plan(scaling: Autoscaling | None) -> AutoscalingPlan | None:
    """Returns how every variant follows the load; None for a fixed number of instances.

    Args:
        scaling: the config's section.
    """
    if scaling is None:
        return None
    return AutoscalingPlan(
        scaling.min_instance_count,
        scaling.max_instance_count,
        scaling.target_invocations_per_instance_per_minute,
        scaling.target_concurrent_requests_per_instance,
        scaling.scale_in_cooldown_seconds,
        scaling.scale_out_cooldown_seconds,
        tuple(SchedulePlan.of(schedule) for schedule in scaling.schedules),
        tuple(StepPlan(step.from_times_target, step.add_instances) for step in scaling.steps),
        scaling.target_backlog_per_instance,
        scaling.target_gpu_utilization_percent,
    )
