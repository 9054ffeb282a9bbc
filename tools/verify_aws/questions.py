"""The questions about updates of the endpoint that the run has deployed, and about a second one.

Each method asks one, and returns the answer in sentences. It raises CheckError if the answer is not
what Slipway relies on.
"""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import existing, paged
from slipway.deployed.calls import describe_endpoint, scaling_items
from slipway.operations.logs import read_log
from slipway.operations.status import Status, find_model_status
from slipway.project import Project
from slipway.s3_address import S3Address
from tools.verify_aws.account import Watch, awaited
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.life import TEXT, invoke
from tools.verify_aws.project import (
    CHANGED_LATENCY,
    MODEL,
    QUEUE_MODEL,
    ROLLOUT_WAIT_SECONDS,
    TAG,
    Settings,
    assembly,
    write_config,
)
from tools.verify_aws.removal import destroy_stack, make_queue_bucket

# The container has answered requests by then, so that only the log may be late.
_LOG_SECONDS = 600.0
_FAILURE_SECONDS = 900.0
# AWS names minutes; longer than any public report.
_INTERFACES_SECONDS = 1800.0
_UNDONE, _STUCK = "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"
_AFTER = "EndpointUpdateAfter"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_TARGETS = (500, 400)
_GONE = "gone"
# Characters of a long text that are kept: its beginning, and its end, which often has the reason.
_HEAD, _TAIL = 140, 100


class Questions:
    def __init__(self, session: Session) -> None:
        client = session.access.client
        self._session, self._target = session, session.target
        self._name = session.target.endpoint
        self._sagemaker, self._scaling = client("sagemaker"), client("application-autoscaling")
        self._runtime, self._logs = client("sagemaker-runtime"), client("logs")
        self._s3, self._ec2 = client("s3"), client("ec2")
        self._settings = Settings(session.target.instance_type, latency=CHANGED_LATENCY)
        self._earlier: frozenset[str] = frozenset()

    def first_log_line(self) -> str:
        """Asks for the container's first log line, which the execution role may write."""
        created: datetime = self._described()["CreationTime"]
        group = f"/aws/sagemaker/Endpoints/{self._name}"
        event = awaited(
            lambda: next(read_log(self._logs, group, created), None),
            until=self._session.until(_LOG_SECONDS),
            missing=f"The log group {quote(group)} has no line.",
        )
        seconds = (event.at.astimezone(UTC) - created).total_seconds()
        return (
            f"The container's first line is from {seconds:.0f} s after the endpoint's creation: "
            f"{quote(event.text)}."
        )

    def change_type(self) -> str:
        """Changes the type: the policy has to be new by name, and the rest as the files say."""
        before = self._policy()["PolicyName"]
        assert self._target.other_type is not None  # noqa: S101  # asked only with --deep
        took = self._deploy(instance_type=self._target.other_type)
        after = self._policy()["PolicyName"]
        if after == before:
            raise CheckError(f"The policy kept the name {quote(before)}.")
        return (
            f"After {took}, the policy was a new one by the name {quote(after)}. The scalable "
            "target had its bounds again."
        )

    def change_target(self) -> str:
        """Changes the value of the policy, which is a new one."""
        before = self._policy()["PolicyARN"]
        took = self._deploy(target_invocations=_TARGETS[0])
        how = "in place" if self._policy()["PolicyARN"] == before else "by a new policy"
        return f"CloudFormation changed the value {how}, after {took}."

    def break_container(self) -> str:
        """Changes the type with a container that cannot start; all has to be as before."""
        earlier = self._state(self._name)
        with Watch(lambda: self._state(self._name)) as states:
            told, _ = self._undone(
                "the container could not start",
                instance_type=self._target.instance_type,
                fault="start",
            )
        return f"{_reason(states, earlier)} {told}"

    def change_rollout(self) -> str:
        """Adds a rollout alone: SageMaker has to know its alarms."""
        told, _ = self._fleet_after(rollout_wait_seconds=ROLLOUT_WAIT_SECONDS)
        config = self._described().get("LastDeploymentConfig")
        if config is None:
            return f"{told} DescribeEndpoint shows no `LastDeploymentConfig`."
        alarms = config.get("AutoRollbackConfiguration", {}).get("Alarms", [])
        if not alarms:
            raise CheckError(f"{told} SageMaker knows no alarm of the rollout.")
        return f"{told} The number of its alarms that SageMaker knows is {len(alarms)}."

    def add_tag(self) -> str:
        """Adds a tag alone: no fleet may start."""
        told, is_new = self._fleet_after(tag=TAG)
        arn = self._described()["EndpointArn"]
        found = paged(self._sagemaker, "list_tags", "Tags", ResourceArn=arn)
        if {"Key": "verified", "Value": TAG} not in found:
            raise CheckError(f"{told} The endpoint does not have the tag.")
        if is_new:
            raise CheckError(told)
        return f"{told} The endpoint has the tag."

    def set_off_alarm(self) -> str:
        """Brings out a fleet whose requests fail: an alarm of the rollout has to undo it."""
        earlier = self._state(self._name)
        with Watch(lambda: self._state(self._name)) as states, Watch(self._request) as requests:
            told, found = self._undone(
                "its requests failed and its alarms were watched", fault="requests"
            )
        if not found.trips:
            raise CheckError(f"CloudWatch's history has no alarm of the rollout. {told}")
        names = ", ".join(quote(trip.alarm) for trip in found.trips)
        failed, answered = requests.counts["failed"], requests.counts["answered"]
        return (
            f"{names} went off. {_reason(states, earlier)} {told} Of {failed + answered} "
            f"requests, {failed} failed."
        )

    def change_target_again(self) -> str:
        """Changes the policy that the first rollback put again: both answers are useful."""
        is_same = self._policy()["PolicyARN"] == self._known_policy()
        begin = f"The policy that was put again had {'the same' if is_same else 'another'} ARN."
        failed = self._failed(_UNDONE, _STUCK, target_invocations=_TARGETS[1])
        if failed is None:
            return f"{begin} CloudFormation found it, and changed the value."
        status, resource, reason = failed
        told = f"{begin} CloudFormation refused: {quote(resource)} failed with {quote(reason)}."
        if status.deployment and status.deployment.status == _UNDONE:
            return f"{told} The stack was rolled back."
        # The way out that docs/operations.md names.
        self._session.command(
            "cdk", "rollback", MODEL, "--orphan", resource, "--app", assembly(MODEL)
        )
        return f"{told} The stack was `{_STUCK}`. After `cdk rollback --orphan` it was not."

    def fail_request(self) -> str:
        """Deploys a second endpoint with a queue, and sends it a request that fails."""
        session = self._session
        make_queue_bucket(session.access, self._target)
        self._earlier = self._interfaces()
        session.slipway("publish", QUEUE_MODEL)
        session.deploy(QUEUE_MODEL, QUEUE_MODEL, "--exclusively")
        invoke(session, QUEUE_MODEL)
        bucket, key = self._target.queue_bucket, "requests/fails.json"
        self._s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({"inputs": "fail"}))
        begun = time.monotonic()
        sent = self._runtime.invoke_endpoint_async(
            EndpointName=self._target.queue_endpoint,
            InputLocation=f"s3://{bucket}/{key}",
            ContentType="application/json",
        )
        if "FailureLocation" not in sent:
            raise CheckError("InvokeEndpointAsync named no `FailureLocation`.")
        place = S3Address.of(sent["FailureLocation"])
        found = awaited(
            lambda: existing(self._s3.get_object, "NoSuchKey", Bucket=place.bucket, Key=place.key),
            until=session.until(_FAILURE_SECONDS),
            missing="There is no object at the request's `FailureLocation`.",
        )
        body = found["Body"].read().decode("utf-8", "replace")
        took = time.monotonic() - begun
        return f"The failure's object was there after {took:.0f} s, with {quote(body)}."

    def delete_in_vpc(self) -> str:
        """Destroys the second endpoint, and waits for its network interfaces to go."""
        name = self._target.queue_endpoint
        if not self._new_interfaces():
            raise CheckError("No network interface of the endpoint was seen in the subnets.")
        begun = time.monotonic()
        with Watch(lambda: (self._state(name)[0], self._new_interfaces())) as watch:
            destroy_stack(self._session, QUEUE_MODEL, name)
            destroyed = time.monotonic() - begun
            awaited(
                lambda: None if self._new_interfaces() else True,
                until=self._session.until(_INTERFACES_SECONDS),
                missing="The interfaces were still there when this run gave up.",
            )
        gone = next((at for at, (state, _) in watch.seen if state == _GONE), destroyed)
        freed = next((at for at, (_, count) in watch.seen if not count), time.monotonic() - begun)
        return (
            f"The network interfaces were gone {freed - gone:.0f} s after the endpoint. "
            f"The whole `cdk destroy` took {destroyed:.0f} s."
        )

    def _deploy(self, **changes: Any) -> str:
        """Deploys the endpoint with changed settings; returns how long it took.

        Raises `CheckError` if the account does not have what the files say then. After a
        `CommandError` the settings stay as they were before.
        """
        changed = replace(self._settings, **changes)
        write_config(self._session.folder, self._target, changed)
        begun = time.monotonic()
        self._session.deploy(MODEL, MODEL, "--exclusively")
        self._settings = changed
        took = time.monotonic() - begun
        self._status(is_planned=True)
        return duration(took)

    def _undone(self, why: str, **changes: Any) -> tuple[str, Status]:
        """Deploys changes that have to be undone; returns what was said, and the status then.

        Raises `CheckError` if they were not undone, or the account has something else than before.
        """
        before, begun = self._status(), time.monotonic()
        failed = self._failed(_UNDONE, **changes)
        if failed is None:
            raise CheckError(f"The deployment succeeded, though {why}.")
        found, resource, reason = failed
        took = duration(time.monotonic() - begun)
        if (now := _served(found)) != (then := _served(before)):
            raise CheckError(f"After the rollback the endpoint serves {now}, not {then}.")
        write_config(self._session.folder, self._target, self._settings)
        self._status(is_planned=True)
        # The step whose function compares what the endpoint serves.
        silent = "SageMaker undid it in silence. " if resource.startswith(_AFTER) else ""
        told = (
            f"{silent}CloudFormation failed at {quote(resource)} with {quote(reason)}. The stack "
            f"was rolled back after {took}."
        )
        return told, found

    def _fleet_after(self, **changes: Any) -> tuple[str, bool]:
        config, streams = _served(self._status()), self._log_streams()
        with Watch(lambda: self._state(self._name)) as states:
            took = self._deploy(**changes)
        is_same = _served(self._status()) == config
        count = len(self._log_streams() - streams)
        is_updated = any(status != "InService" for _, (status, _) in states.seen)
        return (
            f"The endpoint serves {'the same' if is_same else 'another'} configuration after "
            f"{took}. It was {'' if is_updated else 'never '}seen being updated, and the number "
            f"of new instances with a log is {count}.",
            is_updated or bool(count) or not is_same,
        )

    def _status(self, *, is_planned: bool = False) -> Status:
        """Returns what `slipway status` finds; raises `CheckError` if it is not as planned."""
        session, target = self._session, self._target
        project, environment = Project(session.folder), target.environment
        found, _, _ = find_model_status(project, MODEL, environment, session.access, 0)
        if is_planned and found.differences:
            told = (f"`{e.setting}` is {e.deployed}, not {e.files}" for e in found.differences)
            raise CheckError(f"The account does not have what the files say: {', '.join(told)}.")
        return found

    def _failed(self, *expected: str, **changes: Any) -> tuple[Status, str, str] | None:
        """Deploys changes that may fail, so that the stack ends in one of the expected statuses.

        Returns the status after a failure, the resource that failed first, and its reason; None if
        the changes were deployed. Raises `CommandError` if the deployment ended otherwise.
        """
        before = self._status().deployment
        try:
            self._deploy(**changes)
        except CheckError:
            raise
        except CommandError:
            found = self._status()
            stack = found.deployment
            is_new = stack and before and stack.changed > before.changed
            if stack is None or not is_new or stack.status not in expected or not stack.failures:
                raise
            resource, _, reason = stack.failures[0].partition(": ")
            return found, resource, reason
        return None

    def _described(self) -> dict[str, Any]:
        found: dict[str, Any] = self._sagemaker.describe_endpoint(EndpointName=self._name)
        return found

    def _state(self, name: str) -> tuple[str, str]:
        """Returns an endpoint's status and its FailureReason; `gone` without an endpoint."""
        found = describe_endpoint(self._sagemaker, name) or {"EndpointStatus": _GONE}
        return found["EndpointStatus"], found.get("FailureReason", "")

    def _log_streams(self) -> frozenset[str]:
        """Returns the names of the log streams; each instance has its own."""
        group = f"/aws/sagemaker/Endpoints/{self._name}"
        found = paged(self._logs, "describe_log_streams", "logStreams", logGroupName=group)
        return frozenset(stream["logStreamName"] for stream in found)

    def _policy(self) -> dict[str, Any]:
        """Returns the endpoint's scaling policy; raises `CheckError` if it has none, or several."""
        resource = f"endpoint/{self._name}/variant/AllTraffic"
        found = scaling_items(self._scaling, "describe_scaling_policies", ResourceId=resource)
        if len(found) != 1:
            names = ", ".join(each["PolicyName"] for each in found) or "none"
            raise CheckError(f"The endpoint has not one scaling policy, but {names}.")
        return found[0]

    def _known_policy(self) -> str:
        cloudformation = self._session.access.client("cloudformation")
        found = cloudformation.describe_stack_resources(StackName=self._name)["StackResources"]
        arns = [each["PhysicalResourceId"] for each in found if each["ResourceType"] == _POLICY]
        if len(arns) != 1:
            raise CheckError(f"The stack has not one scaling policy, but {len(arns)}.")
        return str(arns[0])

    def _request(self) -> str:
        try:
            self._runtime.invoke_endpoint(
                EndpointName=self._name,
                ContentType="application/json",
                Body=json.dumps({"inputs": TEXT}),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ModelError":
                return "failed"
            raise
        return "answered"

    def _new_interfaces(self) -> int:
        return len(self._interfaces() - self._earlier)

    def _interfaces(self) -> frozenset[str]:
        """Returns the interfaces in the endpoint's subnets that have its security groups."""
        if not self._target.subnet_ids:
            return frozenset()
        filters = {
            "subnet-id": self._target.subnet_ids,
            "group-id": self._target.security_group_ids,
        }
        found = paged(
            self._ec2,
            "describe_network_interfaces",
            "NetworkInterfaces",
            Filters=[{"Name": name, "Values": list(ids)} for name, ids in filters.items()],
        )
        return frozenset(each["NetworkInterfaceId"] for each in found)


def _served(found: Status) -> str | None:
    return found.endpoint.served.config if found.endpoint else None


def _reason(states: Watch[tuple[str, str]], earlier: tuple[str, str]) -> str:
    """Returns a sentence about SageMaker's own reason for an update that it undid.

    The state before may have the reason of an earlier update.
    """
    reasons = sorted({reason for _, (_, reason) in states.seen} - {"", earlier[1]})
    if not reasons:
        return "`FailureReason` told nothing whenever it was read."
    return f"SageMaker's `FailureReason` was {' and '.join(quote(each) for each in reasons)}."


def duration(seconds: float) -> str:
    """Returns a duration in words; two minutes are long enough to be told in minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def quote(text: str) -> str:
    """Returns a text of AWS on one line, as code, so that nobody takes it for Slipway's words."""
    line = " ".join(text.replace("`", "'").split())
    if len(line) > _HEAD + _TAIL:
        line = f"{line[:_HEAD]} [...] {line[-_TAIL:]}"
    return f"`{line}`"
