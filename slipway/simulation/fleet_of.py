"""What of a plan is simulated: scaling, bounds and price. The rest is refused by name."""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.codes.code import Code
from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Autoscaling, Schedule
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.planning.asynchronous import ASYNC
from slipway.planning.plan import DeploymentPlan
from slipway.simulation.queues import Bounds
from slipway.simulation.scaling import Follows, Scaling, ScheduledBounds

# SageMaker ends a real-time request then:
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
_REALTIME_SECONDS = 60
# As the stack renders it: `_WAKE_COOLDOWN_SECONDS` of its constructs.
_WAKE_PAUSE_SECONDS = 300


@dataclass(frozen=True)
class SimulatedFleet:
    """A fleet as its plan has it.

    Without scaling its size is fixed. `count` is that of instances, or copies, at the begin.
    `usd_per_hour` is of one instance of the preferred type; None where it is unknown.
    `most_in_flight` limits the requests that one instance computes at once.
    """

    scaling: Scaling | None
    count: int
    per_instance: int
    bounds: Bounds
    usd_per_hour: float | None
    most_in_flight: int | None


def fleet_of(plan: DeploymentPlan) -> SimulatedFleet:
    """Returns the settings that a simulation follows; raises `UserError` with all the others."""
    problems = [
        Problem(
            Code.NOT_SIMULATED,
            Kind.COMPATIBILITY,
            f"not simulated: {message}",
            "Simulate another model, or the config without that setting.",
            field,
        )
        for message, field in _not_simulated(plan)
    ]
    if problems:
        raise UserError(problems)
    config, component = plan.config, plan.component
    endpoint, serving = config.endpoint, config.serving
    is_async = endpoint.mode == ASYNC
    if component is not None:
        settings = component.settings
        by_flight = settings.target_concurrent_requests_per_copy
        scaling: Scaling | None = Scaling(
            Follows.INVOCATIONS if by_flight is None else Follows.CONCURRENCY,
            by_flight or settings.target_invocations_per_copy_per_minute or 0.0,
            settings.min_copies,
            settings.max_copies,
            settings.scale_out_cooldown_seconds,
            settings.scale_in_cooldown_seconds,
            schedules=_schedules(settings.schedules),
            wakes=component.sleeps,
            wake_pause_seconds=_WAKE_PAUSE_SECONDS,
        )
    else:
        scaling = None if config.autoscaling is None else _scaling(config.autoscaling)
    limit = getattr(serving, "request_timeout_seconds", None)
    bounds = Bounds(
        # SageMaker's own queue keeps the requests of an asynchronous endpoint.
        None if is_async else getattr(serving, "max_queue_length", None),
        None if is_async else min(limit or _REALTIME_SECONDS, _REALTIME_SECONDS),
        is_pooled=is_async or endpoint.routing == "least_outstanding_requests",
        keeps=is_async,
    )
    [price] = plan.cost.hourly
    own = endpoint.async_inference
    return SimulatedFleet(
        scaling,
        plan.variants[0].instance_count if component is None else max(1, settings.min_copies),
        1 if component is None else component.copies_per_instance,
        bounds,
        price.usd,
        own.max_concurrent_invocations_per_instance if own is not None else None,
    )


def _not_simulated(plan: DeploymentPlan) -> Iterator[tuple[str, FieldPath]]:
    scaling = plan.config.autoscaling
    if scaling is not None and scaling.target_gpu_utilization_percent is not None:
        yield (
            "how busy a GPU is does not follow from service times",
            ("autoscaling", "target_gpu_utilization_percent"),
        )
    if plan.config.endpoint.capacity is not None:
        yield "a serverless endpoint", ("endpoint", "mode")
    if plan.config.endpoint.prefix_routing is not None:
        yield "routing by prefix", ("endpoint", "prefix_routing")
    if len(plan.variants) > 1:
        yield "several variants", ("endpoint", "variants")
    if plan.shadow is not None:
        yield "a shadow variant", ("endpoint", "shadow")
    if plan.component is not None and plan.component.settings.min_instance_count:
        yield (
            "instances that stay without copies",
            ("endpoint", "scale_to_zero", "min_instance_count"),
        )
    if plan.host is not None or plan.guests:
        yield "models that share their instances", ("endpoint", "scale_to_zero", "endpoint_of")


def _scaling(section: Autoscaling) -> Scaling:
    if section.target_concurrent_requests_per_instance is not None:
        follows = Follows.CONCURRENCY
    elif section.target_backlog_per_instance is not None:
        follows = Follows.BACKLOG
    else:
        follows = Follows.INVOCATIONS
    return Scaling(
        follows,
        section.target_value,
        section.min_instance_count,
        section.max_instance_count,
        section.scale_out_cooldown_seconds,
        section.scale_in_cooldown_seconds,
        tuple((step.from_times_target, step.add_instances) for step in section.steps),
        _schedules(section.schedules),
        section.wakes,
        max(_WAKE_PAUSE_SECONDS, section.scale_out_cooldown_seconds),
    )


def _schedules(
    sections: tuple[Schedule, ...] | tuple[CopySchedule, ...],
) -> tuple[ScheduledBounds, ...]:
    return tuple(ScheduledBounds(each.at, each.time_zone, each.bounds) for each in sections)
