"""`python -m tools.verify_aws`, or `make verify-aws`."""

import argparse
import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.program import stop_on_signals
from slipway.access import account_errors
from slipway.cli.output import print_error
from slipway.codes.code import Code
from slipway.errors import Kind, UserError
from tools.verify_aws.account import artifact_key_arn, key_state, stack_status
from tools.verify_aws.checks import REMOVAL_MINUTES, Caller, check, estimate, identify
from tools.verify_aws.commands import Run, Session, commands_of
from tools.verify_aws.life import Life
from tools.verify_aws.project import (
    DEFAULT_INSTANCE_TYPE,
    DEFAULT_OTHER_TYPE,
    ROOT,
    Target,
    image_uri,
    write_project,
)
from tools.verify_aws.removal import destroy_all, find_remains
from tools.verify_aws.report import NEVER_RUN, Report, announcement, ask_all, render_answers, say

_FOLDER = ROOT / "build" / "verify-aws"
_LIMIT_MINUTES, _DEEP_LIMIT_MINUTES = 60, 210
# An update of one fleet, or the one fleet of each endpoint.
_DEEP_AT_ONCE = 2
_SHORTEST_MINUTES, _LONGEST_MINUTES = 15, 240


def main(
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    make_commands: Callable[..., Run] = commands_of,
) -> int:
    options = _options(arguments)
    # SIGHUP and SIGTERM act like Ctrl-C, which removes the created resources.
    stop_on_signals()
    try:
        with _only_run(options.folder):
            return _verify(options, environ, make_commands)
    except UserError as error:
        print_error(error, as_json=options.json)
        return 1
    except KeyboardInterrupt:
        say("\nStopped before anything was made.")
        return 1


def _verify(
    options: argparse.Namespace, environ: Mapping[str, str], make_commands: Callable[..., Run]
) -> int:
    folder: Path = options.folder
    say(NEVER_RUN)
    caller = identify(options.region)
    say(f"\nAccount {caller.account}, {caller.region}, as {caller.arn}")
    with account_errors():
        target, earlier = _look(caller, options)
    write_project(folder, target)
    notes = check(caller, target, folder)
    for note in notes:
        say(f"Not checked: {note}")
    types, at_once = [target.instance_type], 1
    if target.other_type is not None:
        types, at_once = [*types, target.other_type], _DEEP_AT_ONCE
        say("\n".join(announcement()))
    cost = estimate(types, target.region, options.minutes, at_once=at_once)
    say("\n".join(cost.lines))
    if earlier:
        say(f"An earlier run left {' and '.join(earlier)}, destroyed first.")
    elif target.artifact_key_arn is not None:
        say("The bucket and the key of an earlier run are used again.")
    _confirm(options.yes)
    report = Report(
        caller.account, caller.region, caller.endpoint, image_uri(target.region), cost, notes
    )
    run = make_commands(folder, folder / "commands.log", region=caller.region, environ=environ)
    ends_at = time.monotonic() + options.minutes * 60.0
    session = Session(target, caller.access, run, folder, ends_at)
    _run(report, session, has_earlier=bool(earlier))
    document = report.render()
    (folder / "report.json").write_text(document, "utf-8")
    say(f"\nThe report, without the account's number, is {folder / 'report.json'}.")
    if options.deep:
        (folder / "deep.md").write_text(render_answers(report), "utf-8")
        say(f"The answers, as lines for docs/fidelity.md, are {folder / 'deep.md'}.")
    if options.json:
        sys.stdout.write(document)
    return 0 if report.is_good else 1


def _look(caller: Caller, options: argparse.Namespace) -> tuple[Target, list[str]]:
    """Returns the target, and the stacks that an earlier run left; raises `UserError`."""
    target = Target(
        caller.account,
        caller.region,
        options.instance_type,
        other_type=options.other_type if options.deep else None,
        subnet_ids=options.subnets,
        security_group_ids=options.security_groups,
    )
    key = artifact_key_arn(caller.access, target.environment)
    if key is not None and key_state(caller.access, key) != "Enabled":
        raise UserError.of(
            Code.ARTIFACT_KEY,
            f"the bucket {target.environment.artifact_bucket} of an earlier run is encrypted "
            f"with {key}, which is no longer usable",
            "Remove the bucket with the commands that the earlier run printed.",
        )
    stacks = (target.queue_endpoint, target.endpoint, target.foundation)
    earlier = [name for name in stacks if stack_status(caller.access, name) is not None]
    return replace(target, artifact_key_arn=key), earlier


def _confirm(is_sure: bool) -> None:
    """Asks on a terminal; raises `UserError` if the answer is no, or there is no terminal."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise UserError.of(
            Code.NO_TERMINAL,
            "this command costs money, and there is no terminal to ask at",
            "Add `--yes`: `make verify-aws VERIFY_AWS_ARGS=--yes`.",
        )
    say("Go on? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError.of(
            Code.NO_TERMINAL, "nothing was made", "Answer `y` to go on.", kind=Kind.VALUE
        )


def _run(report: Report, session: Session, *, has_earlier: bool) -> None:
    """Runs every stage; whatever happens, created stacks are destroyed and leftovers listed."""
    life = Life(session)
    say("")
    try:
        if has_earlier:
            destroy_all(session, report.stage)
        # If a stage that removes them fails, its names would block a deployment.
        if all(stage.outcome == "ok" for stage in report.stages):
            is_good = all(report.stage(name, action) for name, action in life.stages())
            if is_good and session.target.other_type is not None:
                ask_all(report, session)
    except KeyboardInterrupt:
        say("Interrupted. What was made is destroyed now; a second interrupt leaves it there.")
    finally:
        # Also after a bug of this program: an unnoticed endpoint would be billed for ever.
        try:
            destroy_all(session, report.stage)
            report.remains = list(find_remains(session, life.key_arn))
        except KeyboardInterrupt:
            say("Interrupted. An endpoint that is left is billed by the hour.")
        except (BotoCoreError, ClientError) as error:
            say(f"What is left could not be listed: {error}")
        report.say_remains()


@contextlib.contextmanager
def _only_run(folder: Path) -> Iterator[None]:
    """Locks the folder for this run; raises `UserError` if another one has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise UserError.of(
            Code.UNUSABLE_FOLDER,
            f"{folder} cannot be written: {error.strerror}",
            "Name another with `--folder`.",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError.of(
                Code.UNUSABLE_FOLDER,
                f"another run uses {folder}",
                "Wait for it: it would destroy this run's endpoint.",
            ) from None
        yield


def _minutes(text: str) -> int:
    if not text.isdecimal() or not _SHORTEST_MINUTES <= int(text) <= _LONGEST_MINUTES:
        raise argparse.ArgumentTypeError(
            f"{text} is not a number from {_SHORTEST_MINUTES} to {_LONGEST_MINUTES}"
        )
    return int(text)


def _ids(text: str) -> tuple[str, ...]:
    return tuple(each for each in text.split(",") if each)


# The options, each with its help and what argparse is told besides.
_OPTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "region": ("AWS region; without it that of AWS_REGION or of the profile", {}),
    "instance-type": ("of the endpoint's one instance", {"default": DEFAULT_INSTANCE_TYPE}),
    "minutes": (
        f"the run is given up after so many minutes, {_LIMIT_MINUTES} without it "
        f"({_DEEP_LIMIT_MINUTES} with --deep); removing what it made may take {REMOVAL_MINUTES} "
        "more",
        {"type": _minutes},
    ),
    "deep": ("also ask what only an account can answer of updates", {"action": "store_true"}),
    "other-type": ("type that --deep changes to", {"default": DEFAULT_OTHER_TYPE}),
    "subnets": (
        "subnets with a way to S3, with commas, for the second endpoint of --deep",
        {"type": _ids, "default": ()},
    ),
    "security-groups": (
        "security groups in the subnets' VPC that let HTTPS out",
        {"type": _ids, "default": ()},
    ),
    "yes": ("do not ask", {"action": "store_true"}),
    "json": ("print the report on standard output", {"action": "store_true"}),
    "folder": (
        "where the project, the commands' output and the report are kept",
        {"type": Path, "default": _FOLDER},
    ),
}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make verify-aws VERIFY_AWS_ARGS=...",
        description="Deploy one small CPU endpoint to your own account, try it and remove it. "
        "The cost is said, and you are asked, before anything is made. Credentials are those that "
        "boto3 finds, for example with AWS_PROFILE.",
        epilog=NEVER_RUN,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, (about, told) in _OPTIONS.items():
        parser.add_argument(f"--{name}", help=about, **told)
    options = parser.parse_args(arguments)
    if options.minutes is None:
        options.minutes = _DEEP_LIMIT_MINUTES if options.deep else _LIMIT_MINUTES
    if options.deep and options.other_type == options.instance_type:
        parser.error("--other-type and --instance-type are the same")
    if bool(options.subnets) != bool(options.security_groups):
        parser.error("--subnets and --security-groups are given together")
    if options.subnets and not options.deep:
        parser.error("--subnets needs --deep")
    return options


if __name__ == "__main__":
    sys.exit(main())
