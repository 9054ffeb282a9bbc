"""`slipway simulate`."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from slipway.planning.plan import DeploymentPlan
    from slipway.project import Project
    from slipway.simulation.fleet_of import SimulatedFleet
    from slipway.simulation.queues import ServiceTimes
    from slipway.simulation.run import Simulation
    from slipway.simulation.search import Choice
    from slipway.simulation.traffic import Traffic

_MOST_SECONDS: Final = 3600


def simulate(
    name: output.ModelArgument,
    traffic: Annotated[
        str, typer.Option(help="CSV file of requests, or a profile: daily:low=5,high=50.")
    ],
    service_time: Annotated[
        str | None,
        typer.Option(
            help="Of one request in ms, and its SD divided by the mean: 80,0.5. Without the second "
            "number, 1: an exponential distribution. Default: as measured and kept, or else as "
            "predicted.",
            metavar="MS[,CV]",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            help="Requests that an instance computes at once, in `--service-time`. Default: 1.",
            min=1,
            max=10_000,
        ),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="In place of the config's target of scaling.")
    ] = None,
    p99: Annotated[
        float | None,
        typer.Option(
            "--p99", help="Search for the cheapest target and bounds that hold it, in ms."
        ),
    ] = None,
    start_seconds: Annotated[
        float, typer.Option(help="Until a new instance serves.", min=0, max=7200)
    ] = 300,
    begin: Annotated[
        str, typer.Option(help="Time of the traffic's begin, in UTC, for schedules.")
    ] = "2026-01-05T00:00",
    html: Annotated[
        Path | None, typer.Option("--html", help="File to write, over one of its name.")
    ] = None,
    env: output.AnyEnvironmentOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Run traffic against a config's scaling: latency, refusals, instances and cost.

    Nothing is deployed.
    """
    from slipway.cli.plan import plan_environment
    from slipway.simulation.fleet_of import fleet_of
    from slipway.simulation.run import simulate as run
    from slipway.simulation.search import cheapest

    project = output.current_project()
    given, start = _checked(service_time, concurrency, target, p99, begin)
    environment = project.environment(env) if env else plan_environment(project, name)
    plan = project.plan(name, environment, allow_unpublished=True)
    fleet = fleet_of(plan)
    service, origin = (given, "") if given else _service(project, plan, fleet.most_in_flight)
    if (target or p99) and fleet.scaling is None:
        raise output.wrong_value(
            "a fixed number of instances has no target", "Leave `--target` and `--p99`."
        )
    if fleet.most_in_flight is not None and service.concurrency > fleet.most_in_flight:
        raise output.wrong_value(
            f"`--concurrency {service.concurrency}` is more than the {fleet.most_in_flight} of "
            "`max_concurrent_invocations_per_instance`",
            "Give what an instance really computes at once.",
        )
    if fleet.scaling is not None and target is not None:
        fleet = replace(fleet, scaling=replace(fleet.scaling, target=target))
    requests = _traffic(traffic)
    at = start.timestamp()
    found = run(fleet, service, requests, start_seconds=start_seconds, begin=at)
    choice, tried = None, 0
    if p99 is not None and fleet.scaling is not None:
        choice, tried = cheapest(
            fleet, fleet.scaling, service, requests, p99 / 1000,
            start_seconds=start_seconds, begin=at,
        )  # fmt: skip
    if html is not None:
        output.write_file(html, as_page(name, requests, found, start), str(html))
    if as_json:
        search = {"tried": tried, "cheapest": asdict(choice) if choice else None}
        used = {"service": asdict(service) | {"origin": origin or "given"}}
        output.print_json(asdict(found) | used | ({} if p99 is None else {"search": search}))
        return
    times = [("service time", f"{_milliseconds(service.mean_seconds)}, {origin}")] if origin else []
    typer.echo(output.as_lines([*times, *rows(requests, fleet, found)]))
    if p99 is not None:
        typer.echo(_searched(choice, tried, p99))


def _service(
    project: Project, plan: DeploymentPlan, most_in_flight: int | None
) -> tuple[ServiceTimes, str]:
    """Returns the service times that are kept or predicted, and where they are from."""
    from slipway.simulation.queues import ServiceTimes
    from slipway.sizing.performance import performance_of

    measurement = project.measurement(plan.config.name)
    known = performance_of(plan, measurement, most_in_flight or math.inf)
    load, reasons = known.load, "; ".join(known.reasons)
    if load is None:
        raise output.wrong_value(
            f"no service time is known: {reasons}",
            "Give `--service-time MS[,CV]`, or keep a run with `slipway bench --keep`.",
        )
    mean, deviation = load.average_milliseconds, load.deviation_milliseconds
    service = ServiceTimes(mean / 1000, deviation / mean, max(1, round(load.concurrency)))
    unused = f" (measurement not used: {reasons})" if reasons else ""
    return service, f"{known.origin}{unused}"


def rows(traffic: Traffic, fleet: SimulatedFleet, found: Simulation) -> Iterator[tuple[str, str]]:
    yield "traffic", traffic.source
    scaling = fleet.scaling
    if scaling is not None:
        bounds = f"{scaling.minimum} to {scaling.maximum}"
        yield "scaling", f"{bounds} at {scaling.target:g} {scaling.follows.value}"
    yield "requests", f"{found.requests:,.0f}"
    yield "p50", _milliseconds(found.p50_seconds)
    yield "p99", _milliseconds(found.p99_seconds)
    yield "mean wait", _milliseconds(found.mean_wait_seconds)
    yield "refused", _share(found.refused, found.requests)
    yield "timed out", _share(found.timed_out, found.requests)
    yield (
        "instances",
        (
            f"{found.fewest_instances} to {found.most_instances}, "
            f"{found.instance_hours / traffic.seconds * 3600:.1f} at the mean"
        ),
    )
    yield "cost", f"{_usd(found.usd)} for the traffic, {_usd(found.usd_per_month)} a month"


def as_page(name: str, traffic: Traffic, found: Simulation, start: datetime) -> str:
    from html import escape

    from slipway.operations.page import html_page
    from slipway.operations.plots import Plot, Series, as_svg

    course = found.course
    in_milliseconds = tuple(None if p99 is None else 1000 * p99 for p99 in course.p99_seconds)
    plots = [
        Plot(title, unit, (Series(label, values),), start, course.period_seconds)
        for title, unit, label, values in (
            ("Requests", "a second", "requests", course.per_second),
            ("Instances", "that are paid for", "instances", course.instances),
            ("Times of requests", "ms", "p99", in_milliseconds),
        )
    ]
    words = (
        f"{traffic.source}: p50 {_milliseconds(found.p50_seconds)}, p99 "
        f"{_milliseconds(found.p99_seconds)}, refused {_share(found.refused, found.requests)}, "
        f"timed out {_share(found.timed_out, found.requests)}, {_usd(found.usd)}"
    )
    drawn = ['<div class="plots">', *map(as_svg, plots), "</div>"]
    return html_page(f"{name}, simulated", "", [f"<p>{escape(words)}</p>", *drawn])


def _searched(choice: Choice | None, tried: int, p99: float) -> str:
    if choice is None:
        return f"\nNone of {tried} settings holds a p99 of {p99:g} ms with that service time."
    return (
        f"\nThe cheapest of {tried} settings with a p99 below {p99:g} ms: target "
        f"{choice.target:g}, {choice.minimum} to {choice.maximum}: p99 "
        f"{_milliseconds(choice.found.p99_seconds)}, {_usd(choice.found.usd)}"
    )


def _checked(
    service_time: str | None,
    concurrency: int | None,
    target: float | None,
    p99: float | None,
    begin: str,
) -> tuple[ServiceTimes | None, datetime]:
    """Returns the service times, if given, and the begin; raises every option that is wrong."""
    from datetime import UTC, datetime

    from slipway.simulation.queues import ServiceTimes

    parts = ("1" if service_time is None else service_time).split(",")
    numbers = [_positive(part, zero=index == 1) for index, part in enumerate(parts)]
    mean, variation = numbers[0], numbers[1] if len(numbers) > 1 else 1.0
    problems: list[tuple[str, str]] = []
    if service_time is None and concurrency is not None:
        problems.append(("`--concurrency` belongs to `--service-time`", "Give both, or neither."))
    if len(parts) > 2 or mean is None or variation is None or mean > 1000 * _MOST_SECONDS:
        message = f"`--service-time {service_time}` is not MS[,CV]"
        problems.append((message, "Write `80` or `80,0.5`, at most an hour."))
    if variation is not None and variation > 10:
        problems.append((f"a CV of {variation:g} is above 10", "Divide the SD by the mean."))
    for option, value in (("--target", target), ("--p99", p99)):
        if value is not None and not 0 < value < math.inf:
            problems.append((f"`{option} {value:g}` is not above 0", "Give a number above 0."))
    start = None
    try:
        start = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    except ValueError:
        problems.append((f"`--begin {begin}` is no time", "Write it as `2026-01-05T08:00`."))
    if problems or mean is None or variation is None or start is None:
        raise UserError(
            Problem(Code.WRONG_OPTIONS, Kind.VALUE, message, remedy) for message, remedy in problems
        )
    given = ServiceTimes(mean / 1000, variation, concurrency or 1)
    return None if service_time is None else given, start


def _positive(text: str, *, zero: bool) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and (number > 0 or (zero and number == 0)) else None


def _traffic(text: str) -> Traffic:
    from slipway.simulation.traffic import profile, read_trace

    is_file = Path(text).is_file()
    return output.times_in(text, read_trace, Code.SIMULATED_TRAFFIC) if is_file else profile(text)


def _milliseconds(seconds: float | None) -> str:
    return "no answer" if seconds is None else f"{1000 * seconds:,.{0 if seconds >= 1 else 1}f} ms"


def _share(part: float, whole: float) -> str:
    return f"{part:,.0f} ({part / whole:.2%})" if whole else "0"


def _usd(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:,.2f} USD"
