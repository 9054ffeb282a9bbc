"""What another version of Slipway does to the stacks of a project, by both versions' templates."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slipway.codes.code import Code
from slipway.config.names import CI, LOCAL
from slipway.errors import Kind, Problem, UserError
from slipway.operations.reviewing import ChangeReview
from slipway.operations.template_changes import template_effects, template_reach
from slipway.operations.templates import App, synthesised
from slipway.operations.versions import Version
from slipway.planning.consequences import Consequence, Consequences, Effect, fleet_of
from slipway.planning.review import NEW, REMOVED, UNKNOWN, ModelReview
from slipway.project import Project

_ACKNOWLEDGEMENT: Final = re.compile(r" \[ack: [^\]]+\]$")


@dataclass(frozen=True)
class _Stack:
    name: str
    resources: Mapping[str, Any]
    errors: Sequence[str]
    warnings: Sequence[str]


def environments_of(project: Project, name: str | None) -> list[str]:
    """Returns the environments to compare: what a team deploys counts more than a laptop."""
    if name is not None:
        return [project.environment(name).name]
    names = project.environment_names
    return [each for each in names if each not in (LOCAL, CI)] or list(names)


def check_upgrade(
    project: Project, before: Version, after: Version, environments: Sequence[str]
) -> ChangeReview:
    """Compares what two versions make of a project: models, foundation, images, and own stacks."""
    found: list[ModelReview] = []
    problems: list[Problem] = []
    for environment in environments:
        olds, news = _synthesised(project, (before, after), environment)
        for name in dict.fromkeys((*olds, *news)):
            old, new = olds.get(name), news.get(name)
            if new is not None and new.errors and not (old is not None and old.errors):
                told = "\n".join(new.errors)
                told = f"slipway {after.name} refuses {name} in `{environment}`:\n{told}"
                remedy = "Mend the config before the upgrade, or with it."
                problems.append(Problem(Code.REFUSED_BY_VERSION, Kind.STATE, told, remedy))
                continue
            reviewed = _compared(project, name, environment, old, new)
            if reviewed is not None:
                found.append(reviewed)
    return ChangeReview(f"slipway {before.name}", tuple(found), tuple(problems))


def _synthesised(
    project: Project, versions: Sequence[Version], environment: str
) -> list[Mapping[str, _Stack]]:
    with ExitStack() as stack:
        apps = [
            App(
                f"the app.py of slipway {version.name}",
                stack.enter_context(version.project(project.root)),
                "Mend that. Imports that have other names now are in docs/upgrading.md.",
                version.python,
                (version.folder, project.root),
            )
            for version in versions
        ]
        outputs = stack.enter_context(synthesised(apps, environment, ["*"]))
        return [dict(_stacks(output)) for output in outputs]


def _stacks(output: Path) -> Iterator[tuple[str, _Stack]]:
    artifacts = json.loads((output / "manifest.json").read_text("utf-8"))["artifacts"]
    for name, artifact in artifacts.items():
        if artifact["type"] != "aws:cloudformation:stack":
            continue
        properties = artifact["properties"]
        template = json.loads((output / properties["templateFile"]).read_text("utf-8"))
        metadata = artifact.get("metadata", {})
        if (file := artifact.get("additionalMetadataFile")) is not None:
            metadata = json.loads((output / file).read_text("utf-8"))
        told: dict[str, list[str]] = {"aws:cdk:error": [], "aws:cdk:warning": []}
        for entry in (each for entries in metadata.values() for each in entries):
            if entry["type"] in told:
                told[entry["type"]].append(_ACKNOWLEDGEMENT.sub("", entry["data"]))
        stack_name = f"{properties.get('stackName', name)} in {artifact['environment']}"
        yield name, _Stack(stack_name, template.get("Resources", {}), *told.values())


def _compared(
    project: Project, name: str, environment: str, old: _Stack | None, new: _Stack | None
) -> ModelReview | None:
    if old is None or new is None:
        verdict, reason = (NEW, "") if old is None else (REMOVED, "its stack stays, and is billed")
        return ModelReview(name, environment, verdict, reason)
    if old.errors:
        # Of a report, the first problem.
        first = "\n".join(old.errors).partition("\n- ")[2].partition("\n")[0] or old.errors[0]
        who = "both versions refuse it" if new.errors else "the version before refuses it"
        reason = f"{who}: {first}"
        return ModelReview(name, environment, UNKNOWN, reason)
    effects = template_effects(old.resources, new.resources)
    if old.name != new.name:
        reason = "it becomes another stack; the old one stays until `cdk destroy`"
        effects = [Effect("stack", old.name, new.name, Consequence.DESTROY, reason, "")]
    if not effects:
        return None
    verdict = effects[0].consequence
    is_rolled = verdict is Consequence.NEW_FLEET
    fleet = _fleet(project, name, environment) if is_rolled else None
    found = Consequences(tuple(effects), verdict, fleet)
    reach = template_reach(old.resources, new.resources)
    warnings = tuple(each for each in new.warnings if each not in old.warnings)
    return ModelReview(
        name, environment, verdict, found.summary, found, reach=reach, warnings=warnings
    )


def _fleet(project: Project, name: str, environment: str) -> str | None:
    """Returns the size of a new fleet, and how long SageMaker lets it start."""
    try:
        plan = project.plan(name, project.environment(environment), allow_unpublished=True)
    except UserError:
        return None  # the version that runs refuses the config, and one of the two does not
    longest = max(
        each.model_data_download_timeout_seconds
        + each.container_startup_health_check_timeout_seconds
        for each in plan.every_variant
    )
    return f"{fleet_of(plan, {})}; each starts within {longest // 60} minutes, or the update fails"
