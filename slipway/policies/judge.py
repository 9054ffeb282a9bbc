"""Holds a plan against policies. A project's own are its code: their faults are the project's."""

import contextlib
import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from slipway.codes.code import Code, OwnCode
from slipway.config.environment_file import place_in_environment
from slipway.config.sections.policies import NO_POLICIES
from slipway.errors import FieldPath, Kind, Location, Problem, did_you_mean, relative
from slipway.planning.plan import DeploymentPlan
from slipway.policies.plan import UNNAMED, Plan, Policy
from slipway.policies.ready import found_by


def judge(plan: DeploymentPlan, policies: Sequence[Policy], root: Path) -> Iterator[Problem]:
    """Yields what policies refuse, and faults of policies; what is in other files has its place.

    The plan breaks no rule, and its environment has the policies of the file.
    """
    rules = plan.environment.policies
    if not policies and rules == NO_POLICIES:
        return
    seen = Plan.of(plan)
    found = list(found_by(rules, seen))
    named: list[tuple[str, Policy | str]] = [
        (getattr(each, "__qualname__", type(each).__name__), each) for each in policies
    ]
    for name, policy in (*named, *rules.own.items()):
        # Standard output is the command's, which may be JSON.
        with contextlib.redirect_stdout(sys.stderr):
            found += _run(name, policy, seen, root)
    for problem in found:
        if problem.field[:1] == ("environment",) and problem.location is None:
            field, place = place_in_environment(seen.environment, problem.field[1:], root)
            problem = replace(problem, field=field, location=place)
        yield problem


def _run(name: str, policy: Policy | str, plan: Plan, root: Path) -> Iterator[Problem]:
    """Yields the problems that a policy finds, or the problem of the policy itself."""
    field: FieldPath = ()
    about = ""
    try:
        if isinstance(policy, str):
            field = ("environment", "policies", "own", name)
            policy = _imported(policy, root.resolve())
        about = f", for {plan.name} in `{plan.environment}`"
        result = policy(plan)
        for each in [result] if isinstance(result, str | None) else result:
            if not isinstance(each, Problem):
                raise TypeError(f"{each!r:.80} is no problem")
            yield replace(each, code=OwnCode(f"policy {name}")) if each.code == UNNAMED else each
    except (Exception, SystemExit) as error:
        place = _place(error, root.resolve())
        told = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
        yield Problem(
            Code.POLICY_FAILED,
            Kind.STATE,
            f"the policy `{name}` ends with {told}{about}",
            "Correct it. A policy returns or yields problems of `slipway.policies.problem`.",
            () if place else field,
            place,
        )


def _imported(reference: str, root: Path) -> Policy:
    """Imports `module:function`, with the project's root on the path."""
    name, _, function = reference.partition(":")
    # First on the path only while it is imported: a file `queue.py` of the project must not come
    # before Python's in later imports. What the policy itself imports later is still found.
    sys.path.insert(0, str(root))
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(name)
    finally:
        sys.path.remove(str(root))
        if str(root) not in sys.path:
            sys.path.append(str(root))
    if not hasattr(module, function):
        hint = did_you_mean(function, vars(module))
        raise ImportError(f"{name} has no function `{function}`. {hint}")
    policy: Policy = getattr(module, function)
    return policy


def _place(error: BaseException, root: Path) -> Location | None:
    """Returns the last line of the policy's own file before the error; None for no such file."""
    others = (__file__, importlib.__file__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in others and "<frozen" not in frame.filename
    ]
    for frame in reversed(frames):
        if frame.filename == frames[0].filename:
            path = relative(Path(frame.filename), root)
            return Location(path, frame.lineno or 1, (frame.colno or 0) + 1)
    return None
