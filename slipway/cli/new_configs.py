"""What commands that write a new model config share: its path, its check, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from slipway.cli.output import heading
from slipway.codes.code import Code
from slipway.config.names import CI, CONFIG_DIRECTORY, ENVIRONMENTS_FILE, LOCAL
from slipway.errors import Problem, UserError
from slipway.extras import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slipway.config.environments import Environment
    from slipway.config.schema import ModelConfig
    from slipway.project import Project

NEXT: Final = "Next"
WEIGHTS_FORMS: Final = "hub:OWNER/NAME@REVISION, s3://BUCKET/PREFIX/ or a directory"
QUESTIONS: Final = {
    "family": "Architecture of the network",
    "parameters": "Number of its weights",
    "instance": "Hosting instance type",
    "weights": f"Weights ({WEIGHTS_FORMS})",
}


def new_file(
    root: Path, name: str, *, overwrite: bool = False, otherwise: str = "edit that file"
) -> tuple[Path, str]:
    """Returns the path of the config, and its name in messages.

    `otherwise` is what a user can do beside choosing another name, for the remedy.
    """
    from slipway.config.load import SUFFIXES
    from slipway.config.names import NAME_PATTERN
    from slipway.config.schema import is_model_name

    if not is_model_name(name):
        raise UserError.of(
            Code.RESERVED_NAME,
            f"no model may be called {name!r}",
            f"Use at most 40 characters of the form {NAME_PATTERN}, and no name of Slipway's own "
            "stacks (`foundation`, `image-*`).",
        )
    for suffix in reversed(SUFFIXES):
        shown = f"{CONFIG_DIRECTORY}/{name}{suffix}"
        if (root / shown).exists() and overwrite:
            return root / shown, shown
        if (root / shown).exists():
            raise UserError.of(
                Code.FILE_EXISTS,
                f"{shown} is there already",
                f"Choose another name, or {otherwise}.",
            )
    return root / shown, shown


def planned(project: Project, name: str, environments: Sequence[Environment]) -> ModelConfig:
    """Returns a written config; raises every problem in any of the environments."""
    problems: dict[Problem, None] = {}
    for environment in environments:
        try:
            project.plan(name, environment, allow_unpublished=True)
        except UserError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise UserError(problems)
    return project.config(name, environments[0].name).config


def next_steps(config: ModelConfig, environments: Sequence[Environment]) -> dict[str, list[str]]:
    """Returns what can be done with a new config, by where: each step a command or a sentence."""
    here = _on_this_machine(config, environments)
    steps = _next_steps(config, environments)
    return {"On this machine": here, "In an account": steps} if here else {NEXT: steps}


def numbered(steps: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for title, each in steps.items():
        yield heading(f"{title}:")
        yield from (f"  {number}. {step}" for number, step in enumerate(each, 1))


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _next_steps(config: ModelConfig, environments: Sequence[Environment]) -> list[str]:
    from slipway.planning.artifacts import has_source
    from slipway.planning.families import deployment_of

    every = [deployment_of(config, environment) for environment in environments]
    sourced = [deployment for deployment in every if has_source(deployment)]
    # Nobody deploys to the environment that CI synthesises for: any other is proposed before it.
    sourced.sort(key=lambda deployment: deployment.environment.name == CI)
    reason = "no environment deploys what it names"
    for deployment in sourced:
        family, environment = deployment.image_family, deployment.environment
        if environment.is_local and family is None:
            # Only a real account runs an image that Slipway did not build.
            reason = "the embedded AWS does not run this image"
            continue
        publish, deploy = _environment_options(environment)
        steps = []
        if environment.name == CI:
            publish, deploy = " --env NAME", " -c env=NAME"
            steps = [f"Add an environment `NAME` with your account to {ENVIRONMENTS_FILE}."]
        if family is not None and not environment.is_local:
            steps.append(f"cdk deploy image-{family}{deploy}  # once")
        return [
            *steps,
            f"slipway publish {config.name}{publish}",
            f"cdk deploy {config.name}{deploy}",
        ]
    option = _environment_options(sourced[0].environment)[0] if sourced else ""
    return [f"slipway plan {config.name} --allow-unpublished{option}  # shows it; {reason}"]


def _on_this_machine(config: ModelConfig, environments: Sequence[Environment]) -> list[str]:
    """Returns how the embedded AWS serves a checkpoint that it could compile; else nothing."""
    from slipway.planning.artifacts import has_source
    from slipway.planning.families import deployment_of

    local = next((each for each in environments if each.is_local), None)
    if local is None or config.artifacts.compile is None:
        return []
    deployment = deployment_of(config, local)
    if has_source(deployment) or deployment.image_family is None:
        return []
    return [
        f"{command('export')}  # once, as compiling needs PyTorch; in a checkout `make export`",
        f"Set `artifacts: release` for `{local.name}` in {ENVIRONMENTS_FILE}.",
        f"slipway publish {config.name}",
        f"cdk deploy {config.name}",
    ]


def _environment_options(environment: Environment) -> tuple[str, str]:
    """Returns the options to add to a Slipway command, and to a command of the CDK CLI."""
    name = environment.name
    return ("", "") if name == LOCAL else (f" --env {name}", f" -c env={name}")
