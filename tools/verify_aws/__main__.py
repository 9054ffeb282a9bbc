"""`python -m tools.verify_aws`, or `make verify-aws`."""

import argparse
import contextlib
import fcntl
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks.program import stop_on_signals
from slipway.cli.output import print_error
from slipway.codes.code import Code
from slipway.errors import Kind, UserError
from tools.verify_aws.checks import Caller, check, find_region, identify
from tools.verify_aws.commands import Deployment, Run, Session, commands_of
from tools.verify_aws.cost import REMOVAL_MINUTES, estimate
from tools.verify_aws.deep.run import ask_all
from tools.verify_aws.life import Life
from tools.verify_aws.project import (
    DEFAULT_INSTANCE_TYPE,
    DEFAULT_OTHER_TYPE,
    ROOT,
    Deep,
    Target,
    image_uri,
    write_project,
)
from tools.verify_aws.removal import destroy_all, find_remains
from tools.verify_aws.report import NEVER_RUN, Report, say
from tools.verify_aws.stacks import artifact_key_arn, key_state, stack_status
from tools.verify_aws.steps import announcement

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
    """Deploys, tries and removes one endpoint; returns the exit status.

    The status is 0 if every stage succeeded and nothing is left unintentionally.

    Args:
        arguments: None reads the command line.
        environ: the user's variables.
        make_commands: returns the function that runs the commands of a stage.
    """
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
    caller = identify(find_region(options.region, environ))
    say(f"\nAccount {caller.account}, {caller.region}, as {caller.arn}")
    target, earlier = _look(caller, options)
    write_project(folder, target)
    notes = check(caller, target, folder)
    for note in notes:
        say(f"Not checked: {note}")
    types, at_once = [target.instance_type], 1
    if target.deep is not None:
        types, at_once = [*types, target.deep.other_type], _DEEP_AT_ONCE
        for line in announcement():
            say(line)
    cost = estimate(types, target.region, options.minutes, at_once=at_once)
    for line in cost.lines():
        say(line)
    if earlier:
        say(f"An earlier run left {' and '.join(earlier)}, destroyed first.")
    elif target.artifact_key_arn is not None:
        say("The bucket and the key of an earlier run are used again.")
    _confirm(options.yes)
    report = Report(
        caller.account, caller.region, caller.endpoint, image_uri(target.region), cost, notes
    )
    run = make_commands(folder, folder / "commands.log", region=caller.region, environ=environ)
    deployment = Deployment(target, caller.access, run, folder)
    _run(report, deployment, options.minutes, has_earlier=bool(earlier))
    document = report.render()
    (folder / "report.json").write_text(document, "utf-8")
    say(f"\nThe report, without the account's number, is {folder / 'report.json'}.")
    if target.deep is not None:
        (folder / "deep.md").write_text(report.render_answers(), "utf-8")
        say(f"The answers, as lines for docs/fidelity.md, are {folder / 'deep.md'}.")
    if options.json:
        sys.stdout.write(document)
    return 0 if report.is_good else 1


def _look(caller: Caller, options: argparse.Namespace) -> tuple[Target, list[str]]:
    """Returns the target, and the stacks that an earlier run left.

    Raises:
        UserError: the account cannot be examined, or the key of an earlier bucket is unusable.
    """
    deep = Deep(options.other_type, options.subnets, options.security_groups)
    target = Target(
        caller.account, caller.region, options.instance_type, deep=deep if options.deep else None
    )
    try:
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
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            Code.LOOKUP_FAILED,
            f"the account could not be examined: {error}",
            "Use credentials that may read S3's buckets, KMS's keys and CloudFormation's stacks.",
        ) from None
    return replace(target, artifact_key_arn=key), earlier


def _confirm(is_sure: bool) -> None:
    """Asks on a terminal.

    Raises:
        UserError: the answer is no, or there is no terminal.
    """
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


def _run(report: Report, deployment: Deployment, minutes: int, *, has_earlier: bool) -> None:
    """Runs every stage; whatever happens, created stacks are destroyed and leftovers listed."""
    session = Session(deployment, minutes * 60.0)
    life = Life(session)
    say("")
    try:
        if has_earlier:
            destroy_all(deployment, report.stage)
        # If a stage that removes them fails, its names would block a deployment.
        if all(stage.outcome == "ok" for stage in report.stages):
            for name, action in life.stages():
                if not report.stage(name, action):
                    break
            else:
                if deployment.target.deep is not None:
                    ask_all(report, session)
    except KeyboardInterrupt:
        say("Interrupted. What was made is destroyed now; a second interrupt leaves it there.")
    finally:
        # Also after a bug of this program: an unnoticed endpoint would be billed for ever.
        try:
            destroy_all(deployment, report.stage)
            report.remains = list(find_remains(deployment, life.key_arn))
        except KeyboardInterrupt:
            say("Interrupted. An endpoint that is left is billed by the hour.")
        except (BotoCoreError, ClientError) as error:
            say(f"What is left could not be listed: {error}")
        report.say_remains()


@contextlib.contextmanager
def _only_run(folder: Path) -> Iterator[None]:
    """Locks the folder for this run.

    Raises:
        UserError: another run has the lock, or the folder cannot be created.
    """
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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make verify-aws VERIFY_AWS_ARGS=...",
        description="Deploy one small CPU endpoint to your own account, try it and remove it. "
        "The cost is said, and you are asked, before anything is made. Credentials are those that "
        "boto3 finds, for example with AWS_PROFILE.",
        epilog=NEVER_RUN,
    )
    add: Callable[..., object] = parser.add_argument
    add("--region", help="AWS region; without it that of AWS_REGION or of the profile")
    add(
        "--instance-type",
        default=DEFAULT_INSTANCE_TYPE,
        metavar="TYPE",
        help=f"of the endpoint's one instance; without it {DEFAULT_INSTANCE_TYPE}",
    )
    add(
        "--minutes",
        type=_minutes,
        help=f"the run is given up after so many minutes, {_LIMIT_MINUTES} without it "
        f"({_DEEP_LIMIT_MINUTES} with --deep); removing what it made may take {REMOVAL_MINUTES} "
        "more",
    )
    add("--deep", action="store_true", help="also ask what only an account can answer of updates")
    add(
        "--other-type",
        default=DEFAULT_OTHER_TYPE,
        metavar="TYPE",
        help=f"type that --deep changes to; without it {DEFAULT_OTHER_TYPE}",
    )
    add(
        "--subnets",
        type=_ids,
        default=(),
        metavar="IDS",
        help="subnets with a way to S3, with commas, for the second endpoint of --deep",
    )
    add(
        "--security-groups",
        type=_ids,
        default=(),
        metavar="IDS",
        help="security groups in the subnets' VPC that let HTTPS out",
    )
    add("--yes", action="store_true", help="do not ask")
    add("--json", action="store_true", help="print the report on standard output")
    add(
        "--folder",
        type=Path,
        default=_FOLDER,
        help="where the project, the commands' output and the report are kept",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
