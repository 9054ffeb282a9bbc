"""`slipway bench`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.output import (
    DEFAULT_ENVIRONMENT,
    EnvironmentOption,
    JsonOption,
    OptionalModelArgument,
    current_project,
    print_json,
    reported,
    write_file,
    wrong_options,
)
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.extras import require

# Imported when they are needed, because planning takes its time.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.benchmarking.answers import Observed
    from slipway.benchmarking.endpoint import Endpoint
    from slipway.benchmarking.run import Run, Trial
    from slipway.project import Project


def bench(
    name: OptionalModelArgument = None,
    env: EnvironmentOption = DEFAULT_ENVIRONMENT,
    design: Annotated[
        str | None,
        typer.Option(help="YAML file, or a shipped design. Default: the model's own."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the results. Default: a new one below build/bench."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Folders of two runs: say what is better, and measure nothing."),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder of a run: write its figures beside the lock, measure nothing."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure latency, throughput and cost of an endpoint under load."""
    require("load", "a bench")
    if compare is not None or keep is not None:
        if (name, design, output) != (None, None, None) or (compare and keep):
            raise wrong_options(
                f"`--{'compare' if compare else 'keep'}` measures nothing: a model, `--design` and "
                "`--output` have no effect",
                "Give the folders alone.",
            )
        if compare is not None:
            _compare(*compare, as_json=as_json)
        if keep is not None:
            _keep(keep, as_json=as_json)
    elif name is not None:
        _measure(name, env, design, output, as_json=as_json)
    else:
        raise wrong_options("no model is named", "Name one, or two runs with `--compare`.")


def _compare(first: Path, second: Path, *, as_json: bool) -> None:
    from slipway.benchmarking.compare import compare, differences_table, doubts
    from slipway.benchmarking.results import read_document

    documents = read_document(first), read_document(second)
    found, other = compare(*documents), doubts(*documents)
    if as_json:
        print_json({"differences": found, "doubts": other})
        return
    typer.echo(differences_table(found).as_markdown())
    for text in other:
        typer.echo(f"Not only the endpoint differs: {text}.")


def _keep(folder: Path, *, as_json: bool) -> None:
    from slipway.benchmarking.kept import measurement_of
    from slipway.benchmarking.results import read_document

    project, document = current_project(), read_document(folder)
    name, environment = document["model"], project.environment(document["environment"])
    plan = project.plan(name, environment, allow_unpublished=True)
    measurement = measurement_of(document, plan.config.serving.container)
    if others := list(measurement.differences(plan)):
        raise UserError.of(
            Code.NOT_KEPT,
            f"the run is not kept: {'; '.join(others)}",
            f"Deploy {name} to `{environment.name}` and measure again.",
        )
    path = project.measurement_path(name)
    write_file(path, measurement.render(), str(path))
    if as_json:
        print_json(measurement.model_dump(mode="json", exclude_none=True))
    else:
        typer.echo(f"{path}: {measurement.origin}. Commit it beside the lock.")


def _measure(
    name: str, env: str, design: str | None, output: Path | None, *, as_json: bool
) -> None:
    from datetime import UTC, datetime

    from slipway.access import account_errors
    from slipway.benchmarking.design import find_design
    from slipway.benchmarking.kept import served, why_not_kept
    from slipway.benchmarking.report import as_html, as_markdown
    from slipway.benchmarking.requests import find_tokenizer
    from slipway.benchmarking.results import FOLDER, ROWS, SUMMARY, as_document, request_lines
    from slipway.benchmarking.run import Run

    project = current_project()
    loaded = find_design(design, name, project.root, Path.cwd())
    endpoint = _endpoint(project, name, env)
    began_at = datetime.now(UTC)
    folder = output or project.root / FOLDER / name / f"{env}-{began_at:%Y%m%dT%H%M%SZ}"
    rows = folder / ROWS

    def write(trial: Trial, requests: Sequence[Observed]) -> None:
        with reported(str(rows), rows), rows.open("a", encoding="utf-8") as file:
            file.write(request_lines(trial, requests))

    say = partial(typer.echo, err=True)
    try:
        config = project.config(name, env).config
    except UserError:
        config = None  # an endpoint can be measured although its file has mistakes
    tokenizer, where = find_tokenizer(loaded, config, endpoint.environment.artifacts)
    run = Run(endpoint, loaded, tokenizer, where, say, write)
    run.check_variants()
    _ask_once(run)
    with reported(str(folder), folder):
        folder.mkdir(parents=True, exist_ok=True)
        rows.write_bytes(b"")
    before = served(endpoint)
    with account_errors():
        run.carry_out()
    document = as_document(run, began_at, datetime.now(UTC)) | {
        # None after a deployment during the run.
        "served": before if before == served(endpoint) else None,
    }
    # Printed first, because the disk may be what is full.
    if as_json:
        print_json(document)
    else:
        typer.echo(as_markdown(document))
    for path, text in (
        (folder / SUMMARY, json.dumps(document, indent=2, ensure_ascii=False)),
        (folder / "report.md", as_markdown(document)),
        (folder / "report.html", as_html(document)),
    ):
        write_file(path, text, str(path))
    say(f"{folder}: report.html, report.md, {SUMMARY}, {ROWS}")
    if run.stopped is None:
        if why_not_kept(document) is None:
            say(f"For `slipway fit`, `simulate` and `cost`: slipway bench --keep {folder}")
        return
    if as_json:
        raise typer.Exit(1)
    raise run.problem or UserError.of(
        Code.BENCH_STOPPED,
        f"the run ended early: {run.stopped}",
        f"What was measured until then is in {folder}, marked as partial.",
    )


def _endpoint(project: Project, name: str, env: str) -> Endpoint:
    from slipway.access import open_access
    from slipway.benchmarking.endpoint import Endpoint
    from slipway.operations.invoke.realtime import mode_and_queue
    from slipway.planning.component import SCALE_TO_ZERO
    from slipway.shared_endpoints import endpoint_name

    environment = project.environment(env)
    mode, queue = mode_and_queue(project, name, environment.name)
    if queue is not None:
        raise UserError.of(
            Code.BENCH_INPUT,
            f"{name} is asynchronous: its requests wait in a queue",
            "Measure an endpoint that answers at once.",
        )
    component = environment.stack_name(name) if mode == SCALE_TO_ZERO else None
    access = open_access(environment, project.root)
    return Endpoint(name, environment, endpoint_name(project, name, environment), component, access)


def _ask_once(run: Run) -> None:
    from slipway.operations.invoke.realtime import Request, invoke, invoke_stream

    cell, bodies = next(iter(run.bodies.items()))
    form, endpoint = run.loaded.design.request, run.endpoint
    variant, accept = run.variant(cell), "application/json"
    request = Request(
        endpoint.name, bodies[0], form.content_type, accept, variant, endpoint.component
    )
    if form.stream:
        invoke_stream(request, endpoint.access, lambda _part: None)
    else:
        invoke(request, endpoint.access)
