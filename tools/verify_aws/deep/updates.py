"""The questions about updates of the endpoint that the run has deployed."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from tools.verify_aws.answers import quote
from tools.verify_aws.commands import CommandError, Session
from tools.verify_aws.deep.live import Live
from tools.verify_aws.deep.watch import Watch, awaited
from tools.verify_aws.project import CHANGED_LATENCY, MODEL, Settings, assembly, write_config
from tools.verify_aws.report import CheckError

# The container has answered requests by then, so that only the log may be late.
_LOG_SECONDS = 600.0
# Two minutes of values, and the minutes that CloudWatch takes to show them.
ROLLOUT_WAIT_SECONDS = 300
_UNDONE, _STUCK = "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"
_AFTER = "EndpointUpdateAfter"
_TARGETS = (500, 400)
TAG = "by-verify-aws"


class Updates:
    """Changes one endpoint, and tells what came of it.

    Args:
        session: runs the commands.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        deployment = session.deployment
        self._deep = deployment.target.deep
        self._live = Live(deployment, deployment.target.endpoint)
        self._runtime = deployment.access.client("sagemaker-runtime")
        self._settings = Settings(deployment.target.instance_type, latency=CHANGED_LATENCY)

    def actions(self) -> Mapping[str, Callable[[], str]]:
        """Returns the function that asks each question, by the names of the steps."""
        return {
            "first log line": self._first_log_line,
            "change the type": self._change_type,
            "change the target": self._change_target,
            "a broken container": self._break,
            "only the rollout": self._change_rollout,
            "only a tag": self._add_tag,
            "an alarm": self._set_off_alarm,
            "the target after it": self._change_target_again,
        }

    def _deploy(self, **changes: Any) -> str:
        """Deploys the endpoint with changed settings; returns how long it took.

        Raises:
            CommandError: the deployment failed. The settings then stay as they were before.
        """
        changed = replace(self._settings, **changes)
        deployment = self._session.deployment
        write_config(deployment.folder, deployment.target, changed)
        begun = time.monotonic()
        self._session.deploy(MODEL, MODEL, "--exclusively")
        self._settings = changed
        return duration(time.monotonic() - begun)

    def _undone(self, why: str, **changes: Any) -> str:
        """Deploys changes that have to be undone, and returns what CloudFormation said.

        Args:
            why: what should have undone them.
            changes: settings.

        Raises:
            CheckError: they were not undone, or the endpoint serves something else than before.
            CommandError: the deployment ended otherwise.
        """
        before, since, begun = (
            self._live.config_name(),
            self._live.newest_event(),
            time.monotonic(),
        )
        try:
            self._deploy(**changes)
        except CommandError:
            if self._live.stack_status() != _UNDONE:
                raise
        else:
            raise CheckError(f"The deployment succeeded, though {why}.")
        took = duration(time.monotonic() - begun)
        if (now := self._live.config_name()) != before:
            raise CheckError(f"After the rollback the endpoint serves {now}, not {before}.")
        resource, reason = self._live.first_failure(since)
        # The step whose function compares what the endpoint serves.
        silent = "SageMaker undid it in silence. " if resource.startswith(_AFTER) else ""
        return (
            f"{silent}CloudFormation failed at {quote(resource)} with {quote(reason)}. The stack "
            f"was rolled back after {took}."
        )

    def _first_log_line(self) -> str:
        live = self._live
        event = awaited(
            live.first_log_line,
            until=self._session.until(_LOG_SECONDS),
            missing=f"The log group {quote(live.log_group)} has no line.",
        )
        created: datetime = live.described()["CreationTime"]
        first = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
        seconds = (first - created).total_seconds()
        return (
            f"The container's first line is from {seconds:.0f} s after the endpoint's creation: "
            f"{quote(event['message'])}."
        )

    def _change_type(self) -> str:
        assert self._deep is not None  # noqa: S101  # asked only with --deep
        before, bounds = self._live.policy(), self._live.bounds()
        took = self._deploy(instance_type=self._deep.other_type)
        after = self._live.policy()
        if after["PolicyName"] == before["PolicyName"]:
            raise CheckError(f"The policy kept the name {quote(before['PolicyName'])}.")
        _require_target(after, self._settings.target_invocations)
        if (now := self._live.bounds()) != bounds:
            raise CheckError(f"The bounds of the target were {bounds} and are {now}.")
        return (
            f"After {took}, the policy was a new one by the name "
            f"{quote(after['PolicyName'])}. The scalable target had its bounds again."
        )

    def _change_target(self) -> str:
        before, wanted = self._live.policy(), _TARGETS[0]
        took = self._deploy(target_invocations=wanted)
        after = self._live.policy()
        _require_target(after, wanted)
        is_same = after["PolicyARN"] == before["PolicyARN"]
        how = "in place" if is_same else "by a new policy"
        return f"CloudFormation changed the value {how}, after {took}."

    def _break(self) -> str:
        before, earlier = self._live.policy(), self._live.state()
        why = "the container could not start"
        first = self._session.deployment.target.instance_type
        with Watch(self._live.state) as states:
            told = self._undone(why, instance_type=first, fault="start")
        _require_target(self._live.policy(), _target_value(before))
        self._live.bounds()
        return f"{_reason(states, earlier)} {told}"

    def _change_target_again(self) -> str:
        live = self._live
        arn = "the same ARN" if live.policy()["PolicyARN"] == live.known_policy() else "another ARN"
        begin = f"The policy that was put again had {arn}."
        since = live.newest_event()
        try:
            self._deploy(target_invocations=_TARGETS[1])
        except CommandError:
            status = live.stack_status()
            if status not in (_UNDONE, _STUCK):
                raise
            resource, reason = live.first_failure(since)
            told = f"{begin} CloudFormation refused: {quote(resource)} failed with {quote(reason)}."
            if status == _UNDONE:
                return f"{told} The stack was rolled back."
            # The way out that docs/operations.md names.
            self._session.command(
                "cdk", "rollback", MODEL, "--orphan", resource, "--app", assembly(MODEL)
            )
            return f"{told} The stack was `{status}`. After `cdk rollback --orphan` it was not."
        _require_target(live.policy(), _TARGETS[1])
        return f"{begin} CloudFormation found it, and changed the value."

    def _change_rollout(self) -> str:
        told, _ = self._fleet_after(rollout_wait_seconds=ROLLOUT_WAIT_SECONDS)
        config = self._live.described().get("LastDeploymentConfig")
        if config is None:
            return f"{told} DescribeEndpoint shows no `LastDeploymentConfig`."
        alarms = config.get("AutoRollbackConfiguration", {}).get("Alarms", [])
        if not alarms:
            raise CheckError(f"{told} SageMaker knows no alarm of the rollout.")
        return f"{told} The number of its alarms that SageMaker knows is {len(alarms)}."

    def _add_tag(self) -> str:
        told, is_new = self._fleet_after(tag=TAG)
        if self._live.tags().get("verified") != TAG:
            raise CheckError(f"{told} The endpoint does not have the tag.")
        if is_new:
            raise CheckError(told)
        return f"{told} The endpoint has the tag."

    def _fleet_after(self, **changes: Any) -> tuple[str, bool]:
        """Deploys changes; returns sentences about the fleet, and whether it is new."""
        live = self._live
        config, streams = live.config_name(), live.log_streams()
        with Watch(live.state) as states:
            took = self._deploy(**changes)
        is_same = live.config_name() == config
        count = len(live.log_streams() - streams)
        is_updated = any(status != "InService" for status, _ in states.values())
        return (
            f"The endpoint serves {'the same' if is_same else 'another'} configuration after "
            f"{took}. It was {'' if is_updated else 'never '}seen being updated, and the number "
            f"of new instances with a log is {count}.",
            is_updated or bool(count) or not is_same,
        )

    def _set_off_alarm(self) -> str:
        why = "its requests failed and its alarms were watched"
        earlier, since = self._live.state(), self._live.newest_event()
        with Watch(self._live.state) as states, Watch(self._request) as requests:
            told = self._undone(why, fault="requests")
        trips = self._live.trips(since)
        if not trips:
            raise CheckError(f"CloudWatch's history has no alarm of the rollout. {told}")
        names = ", ".join(quote(trip.alarm) for trip in trips)
        failed, answered = requests.counts["failed"], requests.counts["answered"]
        return (
            f"{names} went off. {_reason(states, earlier)} {told} Of {failed + answered} "
            f"requests, {failed} failed."
        )

    def _request(self) -> str:
        try:
            self._runtime.invoke_endpoint(
                EndpointName=self._live.name,
                ContentType="application/json",
                Body=json.dumps({"inputs": "slipway"}),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ModelError":
                return "failed"
            raise
        return "answered"


def _reason(states: Watch[tuple[str, str]], earlier: tuple[str, str]) -> str:
    """Returns a sentence about SageMaker's own reason for an update that it undid.

    Args:
        states: of the endpoint, during the update.
        earlier: its state before, which may have the reason of an earlier update.
    """
    reasons = sorted({reason for _, reason in states.values()} - {"", earlier[1]})
    if not reasons:
        return "`FailureReason` told nothing whenever it was read."
    return f"SageMaker's `FailureReason` was {' and '.join(quote(each) for each in reasons)}."


def _target_value(policy: Mapping[str, Any]) -> float:
    return float(policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"])


def _require_target(policy: Mapping[str, Any], wanted: float) -> None:
    found = _target_value(policy)
    if found != wanted:
        raise CheckError(f"The policy's target value is {found:g}, not {wanted:g}.")


def duration(seconds: float) -> str:
    """Returns a duration in words; two minutes are long enough to be told in minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
