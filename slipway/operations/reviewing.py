"""Finds what a change does to each model: the plans of another commit beside those of the files."""

import contextlib
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.names import CI, ENVIRONMENTS_FILE, LOCAL
from slipway.errors import Problem, UserError, did_you_mean
from slipway.operations.against import compare_with_deployed
from slipway.planning.artifacts import has_source
from slipway.planning.bill import bill_of
from slipway.planning.plan import DeploymentPlan
from slipway.planning.review import ModelReview, review, without_base
from slipway.project import Project
from slipway.project_files import names_host

# The least share of lines that a renamed model keeps.
_RENAMED_SHARE = 0.8


@dataclass(frozen=True)
class ChangeReview:
    """What a change does to each model that differs, in each environment that deploys it.

    The base is a commit, or `deployed`. Problems are of models without a valid plan after the
    change.
    """

    base: str
    models: tuple[ModelReview, ...]
    problems: tuple[Problem, ...]


def review_change(
    project: Project, base: Project, ref: str, patterns: Sequence[str], environment: str | None
) -> ChangeReview:
    """Compares every model that a change may touch, in one environment or in those that deploy it.

    Raises `UserError` if a pattern matches nothing, or a side has no valid environments.
    """
    former = _former_names(project, base)
    names = _selected(sorted({*base.files, *project.files}), patterns)
    # One entry for a renamed model, whichever of its names was asked for.
    current = {old: new for new, old in former.items()}
    names = sorted({current.get(name, name) for name in names})
    touched = [name for name in names if not _is_same(project, base, name)]
    # A host's endpoint has the copies of its guests, and a guest needs its host.
    sides = (project, base)
    both = {*touched, *(former.get(name, name) for name in touched)}
    if any(names_host(_text(s, n)) or s.naming(n) for s in sides for n in both):
        touched = names
    found: list[ModelReview] = []
    problems: dict[Problem, None] = {}
    for name in touched:
        old = former.get(name, name)
        for there in _environments(project, base, name, old, environment):
            try:
                after = _plan(project, name, there)
            except UserError as error:
                problems.update(dict.fromkeys(error.problems))
                continue
            try:
                reviewed = review(_plan(base, old, there), after)
            except UserError as error:
                first = error.problems[0]
                told = f"{first.location.path}: " if first.location else ""
                is_removed = name not in project.files or there not in project.environment_names
                reviewed = without_base(
                    name, old, there, f"{told}{first.message}", is_removed=is_removed
                )
            if reviewed is not None:
                found.append(reviewed)
    return ChangeReview(ref, tuple(found), tuple(problems))


def review_deployed(
    project: Project, names: Sequence[str], access: Access, environment: Environment
) -> ChangeReview:
    found: list[ModelReview] = []
    problems: dict[Problem, None] = {}
    for name in names:
        try:
            plan = project.plan(name, environment)
            reviewed = _with_deployed(plan, access)
        except UserError as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        if reviewed is not None:
            found.append(reviewed)
    return ChangeReview("deployed", tuple(found), tuple(problems))


def _with_deployed(plan: DeploymentPlan, access: Access) -> ModelReview | None:
    try:
        effects = compare_with_deployed(plan, access)
    except UserError as error:
        if [each.code for each in error.problems] == [Code.NOT_DEPLOYED]:
            return review(None, plan)
        raise
    if effects.verdict is None:
        return None
    warnings = tuple(each.message for each in plan.warnings)
    bill = bill_of(plan)
    return ModelReview(
        plan.config.name, plan.environment.name, effects.verdict, effects.summary, effects,
        cost_after=bill.total, known_after=bill.known, warnings=warnings,
    )  # fmt: skip


def _selected(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            hint = did_you_mean(pattern, names)
            raise UserError.of(
                Code.UNKNOWN_MODEL,
                f"no model config matches {pattern!r}, before or after the change",
                f"{hint}There are: {', '.join(names) or 'none'}.",
            )
    return [n for n in names if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns)]


def _former_names(project: Project, base: Project) -> Mapping[str, str]:
    """Returns the names in the base of models that are renamed, by their names now.

    Git does not tell: nearly the same lines under another name are the same model.
    """
    olds, news = (
        {name: _lines(side.texts.get(name, b"")) for name in side.files if name not in other.files}
        for side, other in ((base, project), (project, base))
    )
    alike = [
        (2 * len(lines & others) / (len(lines) + len(others)), name, other)
        for name, lines in news.items()
        for other, others in olds.items()
        if lines and others
    ]
    found: dict[str, str] = {}
    for share, name, other in sorted(alike, reverse=True):
        if share >= _RENAMED_SHARE and name not in found and other not in found.values():
            found[name] = other
    return found


def _lines(text: bytes) -> frozenset[bytes]:
    """Returns the lines that tell models apart: starters have the same comments."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(each for each in lines if each and not each.startswith((b"#", b"name:")))


def _is_same(project: Project, base: Project, name: str) -> bool:
    """Returns whether nothing that a plan is made of differs."""
    sides = (project, base)
    texts = [_text(each, name) for each in sides]
    locks, environments = (
        [path.read_bytes() if path.is_file() else b"" for path in paths]
        for paths in (
            [each.lock_path(name) for each in sides],
            [each.root / ENVIRONMENTS_FILE for each in sides],
        )
    )
    is_same = all(olds == news for olds, news in (texts, locks, environments))
    return is_same and _digests(project) == _digests(base)


def _digests(project: Project) -> Mapping[str, str] | None:
    try:
        return project.image_digests
    except UserError:
        return None  # a plan that needs them has the report


def _text(project: Project, name: str) -> bytes:
    return project.texts.get(name, b"")


def _environments(
    project: Project, base: Project, name: str, old: str, environment: str | None
) -> list[str]:
    """Returns the environments that deploy a model on one side at least."""
    if environment is not None:
        project.environment(environment)  # says which there are
        return [environment]
    known = list(project.environment_names)
    with contextlib.suppress(UserError):  # the base's plans have the report
        known += base.environment_names if _has_environments(base) else []
    names = dict.fromkeys(known)
    found = [each for each in names if deploys(project, name, each) or deploys(base, old, each)]
    # What a team deploys counts more than a laptop and the checks.
    return [each for each in found if each not in (LOCAL, CI)] or found[:1]


def _has_environments(project: Project) -> bool:
    return (project.root / ENVIRONMENTS_FILE).is_file()  # a base may be older than the project


def deploys(project: Project, name: str, environment: str) -> bool:
    if name not in project.files or not _has_environments(project):
        return False
    try:
        if environment not in project.environment_names:
            return False
        return has_source(project.deployment(name, project.environment(environment)))
    except UserError:
        return True  # its plan has the report


def _plan(project: Project, name: str, environment: str) -> DeploymentPlan | None:
    if not deploys(project, name, environment):
        return None
    return project.plan(name, project.environment(environment), allow_unpublished=True)
