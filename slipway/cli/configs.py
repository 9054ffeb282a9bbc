"""`slipway validate`, `slipway plan` and `slipway schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    JsonOption,
    current_project,
    human_size,
    print_json,
)
from slipway.cli.sarif import sarif_log
from slipway.config.environments import Environment
from slipway.config.load import CONFIG_DIRECTORY
from slipway.errors import Problem, UserError
from slipway.planning.memory import MemoryEstimate
from slipway.planning.plan import AutoscalingPlan, DeploymentPlan, VariantPlan
from slipway.project import Project


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(validate)
    app.command()(plan)
    app.command()(schema)


def validate(
    names: Annotated[
        list[str] | None, typer.Argument(help="Models, or patterns. Without any: all.")
    ] = None,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    sarif: Annotated[
        Path | None, typer.Option(help="File to write the problems to, for code review.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check model configs: every problem of every file, with its place and remedy."""
    project = current_project()
    environment = project.environment(env)
    selected = project.select(names or ["*"]) if project.files or names else []
    problems: list[Problem] = []
    for name in selected:
        problems += _problems(project, name, environment)
    if sarif is not None:
        sarif.write_text(json.dumps(sarif_log(problems), indent=2) + "\n", encoding="utf-8")
    if problems:
        raise UserError(problems)
    if as_json:
        print_json({"valid": selected, "problems": []})
    else:
        count = len(selected)
        typer.echo(f"{count} model config{'' if count == 1 else 's'} valid for `{env}`.")


def _problems(project: Project, name: str, environment: Environment) -> list[Problem]:
    """What is wrong with a model in the environment, or in one that its file has a section for."""
    problems: dict[Problem, None] = {}
    try:
        # Whether it was published is a question for the deploy, not for the file.
        project.plan(name, environment, allow_unpublished=True)
        overlays = project.config(name, environment.name).config.environments
    except UserError as error:
        return list(error.problems)
    for other in overlays:
        try:
            project.plan(name, project.environment(other), allow_unpublished=True)
        except UserError as error:
            problems.update(dict.fromkeys(error.problems))
    return list(problems)


def plan(
    name: Annotated[str, typer.Argument(help="Model.")],
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    allow_unpublished: Annotated[
        bool, typer.Option("--allow-unpublished", help="Plan without a published artifact.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a deployment will be: exactly what `cdk synth` renders."""
    project = current_project()
    result = project.plan(name, project.environment(env), allow_unpublished=allow_unpublished)
    if as_json:
        print_json(result.as_json())
    else:
        _print_plan(result)


def schema(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if the file is stale.")
    ] = False,
) -> None:
    """Write model_configs/schema.json, which editors complete and check configs with."""
    from slipway.config.editor_schema import SCHEMA_FILE, render

    path = current_project().root / CONFIG_DIRECTORY / SCHEMA_FILE
    shown, text = f"{CONFIG_DIRECTORY}/{SCHEMA_FILE}", render()
    stale = not path.is_file() or path.read_text("utf-8") != text
    if check and stale:
        raise UserError.of(f"{shown} is stale", "Run `slipway schema` and commit the file.")
    if stale:
        path.write_text(text, encoding="utf-8")
    typer.echo(f"{shown} {'written' if stale else 'is up to date'}.")


def _print_plan(plan: DeploymentPlan) -> None:
    variant, scaling, artifact = plan.variants[0], plan.autoscaling, plan.artifact
    rows = [
        ("endpoint", f"{plan.endpoint_name} in {plan.account}/{plan.region}"),
        ("image", plan.image.uri),
        (
            "artifact",
            f"{artifact.s3_uri} ({human_size(artifact.size_bytes)}, {artifact.file_count} files, "
            f"for {artifact.target})",
        ),
        *(("instances", _instances(each, plan)) for each in plan.variants),
        *((("memory", _memory(plan.memory)),) if plan.memory else ()),
        ("autoscaling", _scaling(scaling) if scaling else "none: a fixed count"),
        (
            "timeouts",
            f"download {variant.model_data_download_timeout_seconds} s, start-up health check "
            f"{variant.container_startup_health_check_timeout_seconds} s",
        ),
        ("volume", f"{variant.volume_size_gb} GB" if variant.volume_size_gb else "as the type has"),
        ("isolation", "no outbound network" if plan.network_isolation else "network open"),
        (
            "alarms",
            f"server error rate over {plan.alarms.server_error_rate_percent:g} %, p99 latency over "
            f"{plan.alarms.model_latency_p99_microseconds / 1000:g} ms, for "
            f"{plan.alarms.evaluation_periods_minutes} minutes",
        ),
        ("logs", f"{plan.log_group_name}, kept {plan.log_retention_days} days"),
        *((f"env {key}", value) for key, value in sorted(plan.container_environment.items())),
        *((f"tag {key}", value) for key, value in sorted(plan.tags.items())),
        *(("warning", warning.message) for warning in plan.warnings),
    ]
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        typer.echo(f"{label:<{width}}  {value}")


def _instances(variant: VariantPlan, plan: DeploymentPlan) -> str:
    text = f"{variant.instance_count} x {', or '.join(variant.instance_types)}"
    if len(plan.variants) > 1:
        share = variant.weight / sum(each.weight for each in plan.variants)
        text += f" ({variant.name}, {share:.0%} of the requests)"
    return text


def _memory(memory: MemoryEstimate) -> str:
    cache = (
        "unknown (give the network's shape)"
        if memory.cache_gib is None
        else f"{memory.cache_gib:.1f}"
    )
    return (
        f"about {memory.total_gib:.1f} of {memory.available_gib:.1f} GiB ({memory.accelerator}): "
        f"weights {memory.weights_gib:.1f}, cache {cache}, assumed for the rest "
        f"{memory.overhead_gib:.1f}"
    )


def _scaling(scaling: AutoscalingPlan) -> str:
    target = (
        f"{scaling.target_invocations_per_instance_per_minute:g} invocations per minute each"
        if scaling.target_invocations_per_instance_per_minute is not None
        else f"{scaling.target_concurrent_requests_per_instance:g} concurrent requests each"
    )
    return f"{scaling.min_instance_count} to {scaling.max_instance_count} instances at {target}"
