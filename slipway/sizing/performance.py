"""What one instance of a plan answers: by its kept measurement, or else by a prediction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from slipway.planning.plan import DeploymentPlan
from slipway.sizing.candidates import own_candidate
from slipway.sizing.facts import constants
from slipway.sizing.latency import Load, request_times
from slipway.sizing.measured import Correction, LoadFigures, Measurement
from slipway.sizing.ranking import Candidate, Goal, levels
from slipway.sizing.traffic import Traffic

# Of the highest throughput: more clients would only wait longer.
_ENOUGH: Final = 0.95
# A bench repeats its prompts, and vLLM keeps prompts: it computes a last block of each.
_LAST_BLOCK: Final = 16


@dataclass(frozen=True)
class Known:
    """Throughput and latency of one instance.

    `load` is the least one with 95 % of the highest throughput; None if nothing is known. The
    reasons say why the measurement is not used, and why nothing is predicted.
    """

    load: LoadFigures | None
    basis: str | None
    origin: str
    reasons: tuple[str, ...]


def performance_of(
    plan: DeploymentPlan, measurement: Measurement | None, most_concurrency: float = math.inf
) -> Known:
    """Returns the measured performance, or else the predicted one.

    An instance computes at most `most_concurrency` requests at once.
    """
    if plan.host is not None or (plan.component and plan.component.copies_per_instance > 1):
        return Known(None, None, "", ("nothing is known of copies that share an instance",))
    if plan.config.endpoint.capacity is not None:
        return Known(None, None, "", ("nothing is known of serverless endpoints",))
    if len(plan.every_variant) > 1:
        return Known(None, None, "", ("nothing is known of several variants",))
    reasons = [] if measurement is None else list(measurement.differences(plan))
    usable = None if reasons else measurement
    instance_type = plan.variants[0].instance_type
    if usable is not None and usable.instance_type != instance_type:
        reasons = [f"{usable.instance_type} was measured, and the plan has {instance_type}"]
    elif usable is not None:
        if load := _least(usable.loads, most_concurrency):
            return Known(load, "measured", f"{usable.origin}, {_at_once(load)}", ())
        reasons = [f"no measured load is within {most_concurrency:g} requests at once"]
    found = _predicted(plan, usable)
    if isinstance(found, str):
        unused = reasons or ["no measurement is kept"]
        return Known(None, None, "", (*unused, f"nothing can be predicted: {found}"))
    loads, origin = found
    load = _least(loads, most_concurrency) or loads[0]
    return Known(load, "predicted", f"{origin}, {_at_once(load)}", tuple(reasons))


def correction_for(plan: DeploymentPlan, measurement: Measurement, goal: Goal) -> Correction | None:
    """Returns how a measurement of a plan corrects predictions; None if no load tells its tokens.

    The lengths of texts decide whether the model fits the measured type.
    """
    own = own_candidate(plan.config, plan.environment, measurement.instance_type, goal)
    if isinstance(own, str):
        return None
    told = [each for each in measurement.loads if each.input_tokens and each.batch == 1]
    told = [each for each in told if each.output_tokens]
    if not told:
        return None
    found = Correction.of(own.instance_type, own.server, (_factor(own, each) for each in told))
    intervals = [
        math.log(each.most_requests_per_second / each.least_requests_per_second) / 2
        for each in told
        if each.most_requests_per_second and each.least_requests_per_second
    ]
    return replace(found, spread=max(intervals, default=0.0))


def _factor(own: Candidate, load: LoadFigures) -> tuple[float, float]:
    """Returns the concurrency of one copy, and how many times as long as predicted it took."""
    clients = max(1, round(load.concurrency / own.memory.copies))
    prompt, answer = load.input_tokens or 0.0, load.output_tokens or 0.0
    keeps = own.server.engine == "vllm" and own.network.reuses_prompts
    bench = Load(clients, prompt, answer, min(_LAST_BLOCK, prompt) if keeps else prompt)
    predicted = request_times(own.network, own.server, bench, constants()).request
    return clients, load.average_milliseconds / 1000 / predicted


def _predicted(
    plan: DeploymentPlan, measurement: Measurement | None
) -> tuple[list[LoadFigures], str] | str:
    """Returns the loads of an instance with the longest texts; or why nothing can be predicted."""
    instance_type = plan.variants[0].instance_type
    limits = [getattr(plan.config.serving, f"max_{each}_tokens", None) for each in ("input", "new")]
    prompt, answer = (each or 1 for each in limits)
    goal = Goal(Traffic(0, 0, ""), math.inf, prompt, answer, plan.environment.region)
    own = own_candidate(plan.config, plan.environment, instance_type, goal)
    if isinstance(own, str):
        return own
    if None in limits:
        return "the config limits no lengths of texts"
    correction = None if measurement is None else correction_for(plan, measurement, goal)
    found = levels(own, goal, correction)
    if not found:
        return "one request needs more memory than there is"
    loads = []
    for level in found:
        tokens, seconds = level.tokens_per_second, level.request_seconds.expected or 0.0
        rates = (tokens.expected, tokens.low, tokens.high)
        rate, least, most = ((each or 0.0) * own.memory.copies / answer for each in rates)
        loads.append(
            LoadFigures(
                concurrency=level.concurrency * own.memory.copies,
                output_tokens=answer,
                requests_per_second=rate,
                least_requests_per_second=least,
                most_requests_per_second=most,
                average_milliseconds=1000 * seconds,
                # An exponential distribution, as `slipway simulate` assumes of a time alone.
                deviation_milliseconds=1000 * seconds,
            )
        )
    texts = f"prompts of {prompt} and answers of {answer} tokens"
    return loads, f"predicted for {texts} on {instance_type}, {found[-1].basis}"


def _least(loads: Sequence[LoadFigures], most_concurrency: float) -> LoadFigures | None:
    """Returns the least load with nearly the highest throughput; None where all are too high."""
    rates = {
        each: each.requests_per_second * (each.tokens or each.batch)
        for each in loads
        if round(each.concurrency) <= most_concurrency
    }
    enough = [load for load, rate in rates.items() if rate >= _ENOUGH * max(rates.values())]
    return min(enough, key=lambda each: each.concurrency, default=None)


def _at_once(load: LoadFigures) -> str:
    return f"{max(1, round(load.concurrency))} at once"
