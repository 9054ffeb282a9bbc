"""Which published artifact one environment may take over from another, or why it may not.

Production serves the bytes that staging tested. The lock names them; nothing is built again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.codes.code import Code
from slipway.errors import FieldPath, Kind, Problem, UserError
from slipway.planning.artifacts import has_source, no_source
from slipway.planning.deployment import Deployment, problem
from slipway.planning.lock import Lock, LockedArtifact, inputs, inputs_digest, is_current

_COMPILE: FieldPath = ("artifacts", "compile")


def promotable(source: Deployment, target: Deployment, lock: Lock) -> LockedArtifact:
    """Returns the artifact that the source environment tested, for the target environment.

    Raises:
        UserError: the environments deploy different artifacts, or none was published.
    """
    problems = list(_mismatches(source, target))
    if problems:
        raise UserError(problems)
    locked = lock.artifact(source)
    problems = list(_faults(source, target, locked))
    if problems or locked is None:
        raise UserError(problems)
    return locked.model_copy(update={"inputs_digest": inputs_digest(target)})


def same_environment(model: str, environment: str) -> Problem:
    return Problem(
        Code.SAME_ENVIRONMENT,
        Kind.VALUE,
        f"`{environment}` is the source and the target of the promotion",
        f"Name two environments: `slipway publish {model} --env TARGET --from TESTED`. Without "
        "`--env`, the target is `local`.",
    )


def package_changed(model: str, source: str) -> Problem:
    """Returns the problem of a package of code that this checkout would make otherwise."""
    return Problem(
        Code.PACKAGE_CHANGED,
        Kind.STATE,
        f"the package of code that this checkout makes is not the one published to `{source}`",
        f"Check out the commit that was published to `{source}`, or run `slipway publish {model} "
        f"--env {source}` and test again.",
        ("serving",),
    )


def _mismatches(source: Deployment, target: Deployment) -> Iterator[Problem]:
    tested, wanted = source.environment, target.environment
    publish = f"run `slipway publish {target.config.name} --env {wanted.name}`."
    if source.deploys_release != target.deploys_release:
        yield problem(
            Code.OTHER_ARTIFACTS,
            f"environment `{tested.name}` deploys the {tested.artifacts}, and `{wanted.name}` "
            f"deploys the {wanted.artifacts}",
            f"Promote from an environment with `artifacts: {wanted.artifacts}`, or {publish}",
            ("artifacts",),
        )
    elif not has_source(target):
        yield no_source(target)
    elif source.is_compiled != target.is_compiled:
        # The embedded AWS serves some families' weights without compiling them.
        built, plain = (target, source) if target.is_compiled else (source, target)
        yield problem(
            Code.PROMOTED_FOR_ANOTHER,
            f"`{built.environment.name}` serves compiled weights, and `{plain.environment.name}` "
            "serves the weights as they are, because the embedded AWS has no accelerator",
            _build(target),
            _COMPILE,
        )
    elif target.is_compiled and source.compile_target != target.compile_target:
        yield from _wrong_target(source, target, source.compile_target)
    elif inputs_digest(source) != inputs_digest(target):
        yield problem(
            Code.ENVIRONMENTS_DIFFER,
            f"the artifact follows from settings that differ between `{tested.name}` and "
            f"`{wanted.name}`: {_differences(inputs(source), inputs(target))}",
            f"Give both environments the same values, or {publish}",
            ("environments",),
        )


def _faults(
    source: Deployment, target: Deployment, locked: LockedArtifact | None
) -> Iterator[Problem]:
    name, tested = target.config.name, source.environment.name
    again = f"Run `slipway publish {name} --env {tested}`, test the endpoint, then promote it."
    if locked is None:
        message = f"model_configs/{name}.lock.json has no artifact of `{tested}`"
        yield Problem(Code.NOT_IN_LOCK, Kind.STATE, message, again, ("artifacts",))
    elif not is_current(locked, source):
        wanted = source.environment.artifacts
        message = f"the config changed after the {wanted} was published to `{tested}`"
        yield Problem(Code.CONFIG_CHANGED, Kind.STATE, message, again, ("artifacts",))
    elif target.is_compiled and locked.compiled is not None:
        yield from _wrong_target(source, target, locked.compiled.target)


def _wrong_target(source: Deployment, target: Deployment, has: str | None) -> Iterator[Problem]:
    wanted = target.compile_target
    if wanted is None or wanted == has:
        return
    place = f" for {target.instance.name}"
    if source.environment.is_local:
        place += ": the embedded AWS compiles for its processor alone"
    elif target.environment.is_local:
        place = ": the embedded AWS has no accelerator"
    place = f"`{target.environment.name}` needs {wanted}{place}"
    message = f"the artifact of `{source.environment.name}` was compiled for {has}, and {place}"
    remedy = _build(target)
    yield problem(Code.PROMOTED_FOR_ANOTHER, message, remedy, _COMPILE)


def _build(target: Deployment) -> str:
    name, environment = target.config.name, target.environment.name
    return (
        f"Run `slipway publish {name} --env {environment}`, which compiles for `{environment}`, or "
        "promote from an environment with the same accelerator."
    )


def _differences(source: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    found = _paths(source, target, "")
    return ", ".join(f"`{path}` ({_shown(ours)}, {_shown(theirs)})" for path, ours, theirs in found)


def _paths(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in sorted({*ours, *theirs}):
            inner = f"{path}.{key}" if path else key
            yield from _paths(ours.get(key), theirs.get(key), inner)
    elif ours != theirs:
        yield path, ours, theirs


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
