"""What the account tells about an endpoint and its stack."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from slipway.access import paged
from slipway.deployed.calls import describe_endpoint, endpoint_alarms, scaling_items
from slipway.operations.status.rollback_causes import Trip, find_trips
from tools.verify_aws.commands import Deployment
from tools.verify_aws.report import CheckError

_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
# CloudFormation's own words for a resource that failed because another one had.
_CANCELLED = "Resource creation cancelled", "Resource update cancelled"


class Live:
    """An endpoint in the account.

    Args:
        deployment: gives access to the account.
        name: of the endpoint and of its stack.
    """

    def __init__(self, deployment: Deployment, name: str) -> None:
        client = deployment.access.client
        self.name = name
        self.log_group = f"/aws/sagemaker/Endpoints/{name}"
        self._sagemaker, self._scaling = client("sagemaker"), client("application-autoscaling")
        self._cloudformation, self._logs = client("cloudformation"), client("logs")
        self._cloudwatch = client("cloudwatch")
        self._resource = f"endpoint/{name}/variant/AllTraffic"

    def described(self) -> dict[str, Any]:
        """Returns DescribeEndpoint's answer.

        Raises:
            CheckError: there is no such endpoint.
        """
        found = describe_endpoint(self._sagemaker, self.name)
        if found is None:
            raise CheckError(f"There is no endpoint {self.name}.")
        return found

    def state(self) -> tuple[str, str]:
        """Returns the endpoint's status and its FailureReason; GONE without an endpoint."""
        found = describe_endpoint(self._sagemaker, self.name)
        if found is None:
            return GONE, ""
        return found["EndpointStatus"], found.get("FailureReason", "")

    def config_name(self) -> str:
        """Returns the configuration that the endpoint serves."""
        return str(self.described()["EndpointConfigName"])

    def tags(self) -> dict[str, str]:
        """Returns the endpoint's tags."""
        arn = self.described()["EndpointArn"]
        found = paged(self._sagemaker, "list_tags", "Tags", ResourceArn=arn)
        return {tag["Key"]: tag["Value"] for tag in found}

    def log_streams(self) -> frozenset[str]:
        """Returns the names of the log streams; each instance has its own."""
        found = paged(self._logs, "describe_log_streams", "logStreams", logGroupName=self.log_group)
        return frozenset(stream["logStreamName"] for stream in found)

    def first_log_line(self) -> dict[str, Any] | None:
        """Returns the oldest event of the log; None without any."""
        events = [
            event
            for stream in self.log_streams()
            for event in self._logs.get_log_events(
                logGroupName=self.log_group, logStreamName=stream, startFromHead=True, limit=1
            )["events"]
        ]
        return min(events, key=lambda event: event["timestamp"], default=None)

    def policy(self) -> dict[str, Any]:
        """Returns the endpoint's scaling policy.

        Raises:
            CheckError: it has none, or several.
        """
        found = scaling_items(self._scaling, "describe_scaling_policies", ResourceId=self._resource)
        if len(found) != 1:
            names = ", ".join(each["PolicyName"] for each in found) or "none"
            raise CheckError(f"The endpoint has not one scaling policy, but {names}.")
        return found[0]

    def bounds(self) -> tuple[int, int]:
        """Returns the bounds of the endpoint's scalable target.

        Raises:
            CheckError: it is not registered.
        """
        found = scaling_items(
            self._scaling, "describe_scalable_targets", ResourceIds=[self._resource]
        )
        if not found:
            raise CheckError(f"No scalable target of {self.name} is registered.")
        return found[0]["MinCapacity"], found[0]["MaxCapacity"]

    def known_policy(self) -> str:
        """Returns the ARN of the policy that CloudFormation knows.

        Raises:
            CheckError: the stack has none, or several.
        """
        found = [
            item["PhysicalResourceId"]
            for item in paged(
                self._cloudformation,
                "list_stack_resources",
                "StackResourceSummaries",
                StackName=self.name,
            )
            if item["ResourceType"] == _POLICY
        ]
        if len(found) != 1:
            raise CheckError(f"The stack has not one scaling policy, but {len(found)}.")
        return str(found[0])

    def trips(self, since: datetime) -> list[Trip]:
        """Returns the alarms of the last rollout that went off after a moment."""
        alarms = list(endpoint_alarms(self._cloudwatch, self.name))
        return list(find_trips(self._cloudwatch, self.described(), alarms, since))

    def stack_status(self) -> str:
        """Returns StackStatus."""
        (stack,) = self._cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        return str(stack["StackStatus"])

    def newest_event(self) -> datetime:
        """Returns when CloudFormation last reported an event of the stack, on AWS's clock."""
        events = self._cloudformation.describe_stack_events(StackName=self.name)["StackEvents"]
        moment: datetime = events[0]["Timestamp"]
        return moment

    def first_failure(self, since: datetime) -> tuple[str, str]:
        """Returns the resource that failed first after a moment, with the reason.

        Raises:
            CheckError: none failed.
        """
        failed = list(self._failures(since))
        if not failed:
            raise CheckError("CloudFormation reported no failure.")
        return failed[-1]

    def _failures(self, since: datetime) -> Iterator[tuple[str, str]]:
        """Yields failed resources with the reasons, the newest first."""
        for event in paged(
            self._cloudformation, "describe_stack_events", "StackEvents", StackName=self.name
        ):
            if event["Timestamp"] <= since:
                return
            reason = event.get("ResourceStatusReason", "")
            if event["ResourceStatus"].endswith("_FAILED") and not reason.startswith(_CANCELLED):
                yield event["LogicalResourceId"], reason


GONE = "gone"
"""The state of an endpoint that does not exist."""
