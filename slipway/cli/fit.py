"""`slipway fit`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from slipway.cli import output
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.facts.instances import InstanceFacts
    from slipway.project import Project
    from slipway.sizing.measured import Correction
    from slipway.sizing.ranking import Goal, LeftOut, Range, Ranked, Ranking
    from slipway.sizing.traffic import Traffic

    OnType = Callable[[str], ModelConfig]


_MOST: Final = 1e6


def fit(
    name: output.OptionalModelArgument = None,
    hub: Annotated[
        str | None, typer.Option(help="In place of NAME: OWNER/NAME[@REVISION] on the Hub.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Requests a second.")] = None,
    traffic: Annotated[
        Path | None, typer.Option(help="In place of --rate: CSV file of times of requests.")
    ] = None,
    p99: Annotated[
        float | None, typer.Option("--p99", help="Limit of the 99th percentile, in ms.")
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(help="Of a prompt and of an answer. Default: the config's limits."),
    ] = None,
    cached_tokens: Annotated[
        int,
        typer.Option(help="Of each prompt's beginning, kept by the engine: a shared instruction."),
    ] = 0,
    instances: Annotated[
        str | None, typer.Option("--instances", help="Types to compare. Default: all with GPUs.")
    ] = None,
    env: output.AnyEnvironmentOption = None,
    as_json: output.JsonOption = False,
) -> None:
    """Rank instance types for a model and its traffic: latency, count and cost, before any deploy.

    Times are predicted from public measurements of other models, each with its band. A measurement
    of yours that `slipway bench --keep` wrote corrects them.
    """
    from slipway.importing.instances import reference
    from slipway.sizing.candidates import ways_of
    from slipway.sizing.ranking import rank

    project = output.current_project()
    types = _checked(name, hub, rate, traffic, p99, tokens, instances)
    names = [env] if env else list(project.environment_names)
    environment = reference([project.environment(each) for each in names])
    config, on = _of_hub(hub) if hub else _own(project, str(name), environment)
    volume = _traffic(rate, traffic)
    limit = (p99 or 0.0) / 1000
    goal = _goal(config, environment, volume, limit, _tokens(tokens), cached_tokens)
    correction, notes = (None, []) if hub else _correction(project, str(name), env, goal)
    found = rank(ways_of(on, environment, types, goal), goal, correction)
    if not found.ranked:
        raise _nothing(found)
    if as_json:
        output.print_json(asdict(found) | {"notes": notes})
    else:
        typer.echo(describe(found, notes))


def _own(project: Project, name: str, environment: Environment) -> tuple[ModelConfig, OnType]:
    """Returns a config of the project, and a function that returns it on another type."""
    from slipway.sizing.candidates import on_type

    config = project.config(name, environment.name).config
    if config.endpoint.capacity is not None:
        raise UserError.of(
            Code.NOT_FOR_SERVERLESS,
            f"{name} is serverless, and `slipway fit` compares instance types",
            "Set `mode: realtime` in the config to compare instances.",
        )
    return config, lambda instance_type: on_type(config, instance_type)


def _correction(
    project: Project, name: str, env: str | None, goal: Goal
) -> tuple[Correction | None, list[str]]:
    """Returns the correction by the kept measurement, and sentences that say what is done."""
    from slipway.sizing.performance import correction_for

    measurement = project.measurement(name)
    if measurement is None:
        return None, []
    found, reasons = None, list[str]()
    try:
        there = project.environment(env or measurement.environment)
        plan = project.unjudged.plan(name, there, allow_unpublished=True)
    except UserError as error:
        reasons = [
            f"{name} has no plan in {env or measurement.environment}: {error.problems[0].message}"
        ]
    else:
        reasons = list(measurement.differences(plan))
        found = None if reasons else correction_for(plan, measurement, goal)
    if found is None:
        why = "; ".join(reasons) or "its loads do not say the tokens of prompts and answers"
        return None, [f"The kept measurement is not used: {why}."]
    return found, [
        f"Types with {found.server.gpu.product} are corrected by what was {measurement.origin}."
    ]


def _of_hub(hub: str) -> tuple[ModelConfig, OnType]:
    """Returns the same of the config that `slipway init` would write for a checkpoint."""
    from slipway.cli.init_checkpoint import OF_A_CHECKPOINT, FirstConfig
    from slipway.config.schema import ModelConfig
    from slipway.config.starter import first_content
    from slipway.importing.checkpoints import named_hub_place
    from slipway.sizing.ranking import LARGEST_BATCH

    first = FirstConfig("fit", OF_A_CHECKPOINT, named_hub_place(hub))
    facts, place = first.place.facts, first.place
    if facts.family is None or facts.parameters is None:
        raise _unknown(place.unread or f"the files of {hub} tell no network")
    unused = ("sample", "framework", "task", "repository", "image_uri")
    given: dict[str, Any] = {
        **dict.fromkeys(unused),
        "family": facts.family,
        "parameters": facts.parameters,
        "latency_milliseconds": 1,
        "weights": place.section,
    }

    def on(instance_type: str) -> ModelConfig:
        content = first_content(first.answers({**given, "instance": instance_type}))
        # The batch is what fits, not what a first config begins with.
        content["serving"]["max_rolling_batch_size"] = LARGEST_BATCH
        return ModelConfig.model_validate(content)

    return on("ml.g5.12xlarge"), on


def _goal(
    config: ModelConfig,
    environment: Environment,
    traffic: Traffic,
    p99_seconds: float,
    tokens: tuple[int, int] | None,
    cached_tokens: int,
) -> Goal:
    from slipway.planning.families import deployment_of
    from slipway.sizing.candidates import network_of
    from slipway.sizing.network import UnknownShapeError
    from slipway.sizing.ranking import Goal

    try:
        network = network_of(deployment_of(config, environment))
    except UnknownShapeError as error:
        raise _unknown(str(error)) from None
    limits = (getattr(config.serving, f"max_{each}_tokens") for each in ("input", "new"))
    prompt, answer = tokens or limits
    if prompt is None or answer is None:
        raise output.wrong_value("the config limits no lengths of texts", "Add `--tokens IN,OUT`.")
    most = config.model.positions
    if most is not None and prompt + answer > most:
        raise output.wrong_value(
            f"{prompt} and {answer} tokens are more than the network's {most} positions",
            "Ask for fewer in `--tokens`.",
        )
    if not 0 <= cached_tokens < prompt or (cached_tokens and not network.reuses_prompts):
        raise output.wrong_value(
            f"`--cached-tokens {cached_tokens}` is not less than the prompt's {prompt}, or the "
            "network has states, which no engine keeps",
            "Leave it out, or give the tokens that all prompts begin with.",
        )
    return Goal(traffic, p99_seconds, prompt, answer, environment.region, cached_tokens)


def _checked(
    name: str | None,
    hub: str | None,
    rate: float | None,
    traffic: Path | None,
    p99: float | None,
    tokens: str | None,
    instances: str | None,
) -> list[InstanceFacts]:
    """Returns the types to compare; raises every option that is missing, wrong or contradictory."""
    from slipway.facts.instances import instance_types

    types = instance_types()
    named = [each.strip() for each in instances.split(",")] if instances else []
    wrong = {
        "NAME or `--hub` says which model": (name is None) == (hub is None) and "Give one of them.",
        "`--rate` or `--traffic` says how many requests come": (rate is None) == (traffic is None)
        and "Give one of them.",
        f"`--rate {rate}` is not above 0 and below a million": rate is not None
        and not 0 < rate < _MOST
        and "Give it in requests a second.",
        "`--p99` needs a limit above 0": not 0 < (p99 or 0) < math.inf
        and "Give it in milliseconds.",
        f"`--tokens {tokens}` is not two numbers above 0": tokens is not None
        and _tokens(tokens) is None
        and "Write `--tokens 500,100`.",
        **{
            f"there is no instance type {each!r}": did_you_mean(each, types)
            or "Write it as `ml.g5.2xlarge`, and separate types by commas."
            for each in named
            if each not in types
        },
    }
    problems = [
        Problem(Code.WRONG_OPTIONS, Kind.VALUE, message, remedy)
        for message, remedy in wrong.items()
        if remedy
    ]
    if problems:
        raise UserError(problems)
    return [types[each] for each in named or types if named or types[each].accelerator]


def _tokens(text: str | None) -> tuple[int, int] | None:
    parts = (text or "").split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        return None
    prompt, answer = map(int, parts)
    return (prompt, answer) if prompt > 0 and answer > 0 else None


def _traffic(rate: float | None, file: Path | None) -> Traffic:
    from slipway.sizing.traffic import Traffic, read_traffic

    if rate is not None:
        return Traffic(rate, rate, f"{rate:g} requests a second")
    return output.times_in(str(file), read_traffic, Code.FIT_TRAFFIC)


def _unknown(reason: str) -> UserError:
    return UserError.of(
        Code.FIT_UNKNOWN,
        f"nothing can be predicted: {reason}",
        "Deploy it once and measure it; docs/sizing.md says what `fit` knows.",
    )


def _nothing(found: Ranking) -> UserError:
    """Returns the error of a goal that no type holds: the fastest type, or all reasons."""
    timed = [(each.seconds, each) for each in found.left_out if each.seconds is not None]
    if timed:
        _, fastest = min(timed, key=lambda pair: pair[0])
        of = f"of {len(found.left_out)} types, {fastest.instance_type} is the fastest"
        why = f"{of}: {fastest.reason}"
        remedy = "Raise `--p99`, ask for fewer tokens, or serve a smaller model."
    else:
        why = "; ".join(f"{each.instance_type}: {each.reason}" for each in found.left_out)
        remedy = "Name other types in `--instances`, or serve a smaller or quantised model."
    limit = f"a p99 of {1000 * found.goal.p99_seconds:g} ms"
    return UserError.of(Code.FIT_NOTHING, f"no instance type holds {limit}: {why}", remedy)


_DETAILED: Final = 5


def describe(found: Ranking, notes: Sequence[str] = ()) -> str:
    """Returns the goal, notes, the cheapest types in detail, others, and why types are left out."""
    goal, traffic = found.goal, found.goal.traffic
    at = "" if traffic.peak == traffic.mean else f" ({traffic.peak:.3g} a second)"
    lines = [
        f"For {traffic.source}{at}, prompts of {goal.input_tokens} tokens and answers of "
        f"{goal.output_tokens}, 99 of 100 within {1000 * goal.p99_seconds:g} ms.",
        "Predicted from measurements of other models, with the band in brackets.",
        *notes,
    ]
    for place, each in enumerate(found.ranked[:_DETAILED], start=1):
        rows = output.as_lines(list(_rows(each, goal)))
        lines += ["", f"{place}. {each.instance_type}, {each.basis}", indent(rows, "   ")]
    if others := found.ranked[_DETAILED:]:
        lines += ["", "Behind them:", output.as_lines([_in_short(each) for each in others])]
    if found.left_out:
        lines += ["", "Left out:", *_reasons(found.left_out)]
    return "\n".join(lines)


def _in_short(each: Ranked) -> tuple[str, str]:
    cost = "no published price"
    if each.usd_per_hour is not None:
        cost = f"{_range(each.usd_per_month, '{:,.0f}')} USD a month"
    count, p99 = _range(each.instances, "{:.0f}"), _range(each.p99_seconds, "{:.0f}", 1000)
    return each.instance_type, f"instances {count}, p99 {p99} ms, {cost}, {each.basis}"


def _rows(each: Ranked, goal: Goal) -> Iterator[tuple[str, str]]:
    gpus = f"{each.degree} GPUs" if each.degree > 1 else "1 GPU"
    copies = f"{each.copies} copies" if each.copies > 1 else "1 copy"
    yield "instances", f"{_range(each.instances, '{:.0f}')}, {copies} on each over {gpus}"
    memory = each.memory
    yield (
        "GPU memory",
        f"weights {memory['weights_gib']:.1f}, cache {memory['cache_gib']:.1f} for "
        f"{each.largest_batch} requests, rest {memory['rest_gib']:.1f} of "
        f"{memory['available_gib']:.1f} GiB",
    )
    yield "first token", f"{_range(each.first_token_seconds, '{:.0f}', 1000)} ms"
    yield "each token", f"{_range(each.token_seconds, '{:.1f}', 1000)} ms"
    yield "p99", f"{_range(each.p99_seconds, '{:.0f}', 1000)} ms, waiting included"
    levels = ", ".join(
        f"{level.tokens_per_second.expected:.0f} at {level.concurrency}" for level in each.levels
    )
    yield "tokens/s of a copy", f"{levels} clients"
    if each.usd_per_hour is None:
        yield "cost", f"unknown: no published price in {goal.region}"
        return
    yield (
        "cost",
        f"{_range(each.usd_per_month, '{:,.0f}')} USD a month; a million requests "
        f"{_range(each.usd_per_million_requests, '{:,.2f}')}, a million tokens "
        f"{_range(each.usd_per_million_tokens, '{:,.2f}')} (price of {each.price_as_of})",
    )


def _range(value: Range, form: str, scale: float = 1.0) -> str:
    low, expected, high = (
        "none" if each is None else form.format(each * scale)
        for each in (value.low, value.expected, value.high)
    )
    if expected == low == high:
        return expected
    return f"{expected} [{low} to {high}]"


def _reasons(left_out: Sequence[LeftOut]) -> Iterator[str]:
    types: dict[str, list[str]] = {}
    for each in left_out:
        types.setdefault(each.reason, []).append(each.instance_type)
    for reason, names in types.items():
        yield f"- {', '.join(names)}: {reason}"
