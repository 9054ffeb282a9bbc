"""`slipway publish`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import output
from slipway.cli.publish_progress import ProgressBar
from slipway.codes.code import Code
from slipway.config.names import LOCAL
from slipway.errors import Problem, UserError

if TYPE_CHECKING:
    from slipway.access import Access
    from slipway.config.environments import Environment
    from slipway.project import Project
    from slipway.publishing.publish import Published


def publish(
    name: output.OptionalModelArgument = None,
    env: output.EnvironmentOption = output.DEFAULT_ENVIRONMENT,
    every: Annotated[
        bool, typer.Option("--all", help="Publish every model that has files for the environment.")
    ] = False,
    remote: Annotated[
        bool,
        typer.Option("--remote", help="Publish in a build next to S3; only the lock comes back."),
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="With `--remote`: stop the model's running build.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ENV",
            help="Promote: copy what was published to this environment, and build nothing.",
        ),
    ] = None,
    source_profile: Annotated[
        str | None,
        typer.Option(
            "--from-profile",
            metavar="PROFILE",
            help="AWS profile that reads the artifacts of `--from`, if it is another account.",
        ),
    ] = None,
    image: Annotated[
        bool,
        typer.Option("--image", help="With `--from`: copy the tested image of the container too."),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read every byte in the bucket, and compare the digests."),
    ] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Publish a model: upload its files, compile them if needed, write its lock file."""
    from slipway.access import open_access, open_source
    from slipway.publishing.promotion import promote
    from slipway.publishing.publish import publish as publish_here
    from slipway.publishing.remote.publish import publish_remotely

    if source_profile is not None and source in (None, LOCAL):
        raise output.wrong_options(
            "`--from-profile` needs `--from` with an environment that has an account"
            if source is None
            else "`--from-profile` has no effect on `local`, which is the embedded AWS",
            "Write `slipway publish NAME --env production --from staging --from-profile PROFILE`.",
        )
    if (name is None) != every:
        raise output.wrong_options(
            "`slipway publish` takes either the name of a model or `--all`",
            "Write `slipway publish NAME`, or `slipway publish --all`.",
        )
    if cancel and (name is None or not remote):
        raise output.wrong_options(
            "`--cancel` needs the name of a model and `--remote`",
            "Write `slipway publish NAME --remote --cancel`.",
        )
    if remote and source is not None:
        raise output.wrong_options(
            "`--remote` and `--from` exclude each other",
            "A promotion copies within S3 by itself: leave `--remote` out.",
        )
    if image and source is None:
        raise output.wrong_options(
            "`--image` needs `--from`",
            "Write `slipway publish NAME --env production --from staging --image`.",
        )
    if remote and verify:
        raise output.wrong_options(
            "`--remote` and `--verify` exclude each other",
            "Write `slipway publish NAME --verify` once the build is over.",
        )
    project = output.current_project()
    environment = project.environment(env)
    tested = None if source is None else project.environment(source)
    if tested is not None and tested.name == environment.name:
        from slipway.planning.promotion import same_environment

        raise UserError([same_environment(name or "--all", environment.name)])
    access = open_access(environment, project.root)
    if cancel and name is not None:
        _cancel(project, name, environment, access, as_json=as_json)
        return
    given = (
        None
        if tested is None
        else open_source(tested, environment, access, project.root, source_profile)
    )

    def publish_model(name: str, progress: ProgressBar) -> tuple[Published, dict[str, Any]]:
        """Returns the result, and its form as JSON."""
        model = (project, name, environment, access, progress)
        if remote:
            found = publish_remotely(*model)
            return found.published, {**asdict(found.published), "build": found.build}
        if tested is None or given is None:
            result = publish_here(*model, verify=verify)
        else:
            source_access, within_s3 = given
            result = promote(
                *model,
                source=tested,
                source_access=source_access,
                within_s3=within_s3,
                verify=verify,
                with_image=image,
            )
        return result, asdict(result)

    names = [name] if name is not None else _with_files(project, environment)
    problems: list[Problem] = []
    results: dict[str, Any] = {}
    for each in names:
        try:
            for one in project.published_names(each, environment):
                with ProgressBar() as progress:
                    result, told = publish_model(one, progress)
                if variant := one.partition("@")[2]:
                    results[each].setdefault("variants", {})[variant] = told
                else:
                    results[each] = told
                if not as_json:
                    _print(result, one, project, environment)
                    if verify:
                        typer.echo("Every byte in the bucket was read: it is what the digests say.")
        except UserError as error:
            # One bad model never blocks another.
            problems += error.problems
    if as_json and name is None:
        published = [{"name": each, **result} for each, result in results.items()]
        shown = [problem.as_json() for problem in problems]
        output.print_json({"published": published, "problems": shown})
        raise typer.Exit(1 if problems else 0)
    if problems:
        raise UserError(problems)
    if as_json:
        output.print_json(results[names[0]])


def _cancel(
    project: Project, name: str, environment: Environment, access: Access, *, as_json: bool
) -> None:
    from slipway.publishing.remote.publish import cancel

    with ProgressBar() as progress:
        stopped = cancel(project, name, environment, access, progress)
    if as_json:
        output.print_json({"stopped": stopped})
        return
    for identifier in stopped:
        typer.echo(f"Stopped the build {identifier}. A training job that it started goes on.")


def _with_files(project: Project, environment: Environment) -> list[str]:
    """Returns the models to publish, including invalid ones, whose problems publishing reports."""
    from slipway.planning.artifacts import has_source

    names = []
    for name in project.files:
        try:
            deployment = project.deployment(name, environment)
        except UserError:
            names.append(name)
        else:
            if has_source(deployment):
                names.append(name)
    if not names:
        raise UserError.of(
            Code.NOTHING_TO_PUBLISH,
            f"no model config has a {environment.artifacts} for {environment.name}",
            "Run `slipway publish NAME`: it reports what that model needs.",
        )
    return names


def _print(result: Published, name: str, project: Project, environment: Environment) -> None:
    from slipway.planning.lock import int8_finding
    from slipway.publishing.weights import ANY

    files = "1 file" if result.file_count == 1 else f"{result.file_count} files"
    size = f"{output.human_size(result.size_bytes)} in {files}"
    sent = output.human_size(result.uploaded_bytes)
    if result.promoted_from is None:
        moved = f"{sent} sent" if result.uploaded_bytes else "nothing to send, it was all there"
        typer.echo(f"Published {name} to {environment.name}: {size}, {moved}.")
    else:
        moved = f"{sent} copied" if result.uploaded_bytes else "nothing to copy, it was all there"
        way = f"from {result.promoted_from} to {environment.name}"
        typer.echo(f"Promoted {name} {way}: {size}, {moved}.")
    if result.parts is not None:
        parts = f"{output.human_size(result.parts.size_bytes)} for {result.parts.target}"
        typer.echo(f"Partitioned into {parts}, by {result.parts.source}.")
        typer.echo(f"The container loads the parts itself: artifact {result.parts.digest}")
    elif result.weights_digest is not None and result.target == ANY:
        typer.echo(f"The container loads the weights itself: artifact {result.weights_digest}")
    elif result.weights_digest is not None:
        why = ", as the embedded AWS has no accelerator" if environment.is_local else ""
        typer.echo(f"Compiled for {result.target}{why}, by {result.source}.")
    if result.accuracy is not None:
        typer.echo(f"In int8 {int8_finding(result.accuracy)}.")
    typer.echo(f"Artifact {result.digest}")
    if result.image is not None:
        copied = output.human_size(result.image.copied_bytes)
        typer.echo(f"Image {result.image.uri}, {result.image.digest}: {copied} copied.")
    lock = project.lock_path(name).relative_to(project.root).as_posix()
    typer.echo(f"{lock} {'changed: commit it.' if result.lock_changed else 'is as it was.'}")
