"""The questions about a second endpoint, which has a queue and perhaps a network."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import paged
from slipway.s3_address import S3Address
from tools.verify_aws.answers import quote
from tools.verify_aws.commands import Session
from tools.verify_aws.deep.live import GONE, Live
from tools.verify_aws.deep.watch import Watch, awaited
from tools.verify_aws.life import TEXT, TEXT_REVERSED
from tools.verify_aws.project import QUEUE_MODEL
from tools.verify_aws.removal import destroy_stack, make_queue_bucket
from tools.verify_aws.report import CheckError

_FAILURE_SECONDS = 900.0
# AWS names minutes; longer than any public report.
_INTERFACES_SECONDS = 1800.0


class Queue:
    """Deploys, tries and destroys a second endpoint.

    Args:
        session: runs the commands.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        deployment = session.deployment
        self._target = deployment.target
        self._access = deployment.access
        self._live = Live(deployment, self._target.queue_endpoint)
        self._ec2 = self._access.client("ec2")
        self._earlier: frozenset[str] = frozenset()

    def actions(self) -> Mapping[str, Callable[[], str]]:
        """Returns the function that asks each question, by the names of the steps."""
        return {"a failing request": self._fail, "deletion in a VPC": self._delete}

    def _fail(self) -> str:
        session = self._session
        make_queue_bucket(self._access, self._target)
        self._earlier = self._interfaces()
        session.slipway("publish", QUEUE_MODEL)
        session.deploy(QUEUE_MODEL, QUEUE_MODEL, "--exclusively")
        answer = session.slipway("invoke", QUEUE_MODEL, json.dumps({"inputs": TEXT}))["answer"]
        if answer != {"reversed": TEXT_REVERSED}:
            raise CheckError(f"The endpoint answered {quote(json.dumps(answer))}.")
        return self._failing_request()

    def _failing_request(self) -> str:
        s3 = self._access.client("s3")
        bucket, key = self._target.queue_bucket, "requests/fails.json"
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({"inputs": "fail"}))
        begun = time.monotonic()
        sent = self._access.client("sagemaker-runtime").invoke_endpoint_async(
            EndpointName=self._live.name,
            InputLocation=f"s3://{bucket}/{key}",
            ContentType="application/json",
        )
        location = sent.get("FailureLocation")
        if location is None:
            raise CheckError("InvokeEndpointAsync named no `FailureLocation`.")
        body = awaited(
            lambda: _read(s3, location),
            until=self._session.until(_FAILURE_SECONDS),
            missing="There is no object at the request's `FailureLocation`.",
        )
        return (
            f"The failure's object was there after {time.monotonic() - begun:.0f} s, with "
            f"{quote(body)}."
        )

    def _delete(self) -> str:
        if not self._interfaces() - self._earlier:
            raise CheckError("No network interface of the endpoint was seen in the subnets.")
        begun = time.monotonic()
        with Watch(self._seen) as watch:
            destroy_stack(self._session.deployment, QUEUE_MODEL, self._live.name)
            destroyed = time.monotonic() - begun
            awaited(
                lambda: None if self._interfaces() - self._earlier else True,
                until=self._session.until(_INTERFACES_SECONDS),
                missing="The interfaces were still there when this run gave up.",
            )
        gone = next((at for at, (state, _) in watch.seen if state == GONE), destroyed)
        freed = next((at for at, (_, count) in watch.seen if count == 0), time.monotonic() - begun)
        return (
            f"The network interfaces were gone {freed - gone:.0f} s after the endpoint. "
            f"The whole `cdk destroy` took {destroyed:.0f} s."
        )

    def _seen(self) -> tuple[str, int]:
        """Returns the endpoint's status, and the number of its network interfaces."""
        return self._live.state()[0], len(self._interfaces() - self._earlier)

    def _interfaces(self) -> frozenset[str]:
        """Returns the interfaces in the endpoint's subnets that have its security groups."""
        deep = self._target.deep
        if deep is None or not deep.subnet_ids:
            return frozenset()
        filters = {"subnet-id": deep.subnet_ids, "group-id": deep.security_group_ids}
        found = paged(
            self._ec2,
            "describe_network_interfaces",
            "NetworkInterfaces",
            Filters=[{"Name": name, "Values": list(ids)} for name, ids in filters.items()],
        )
        return frozenset(each["NetworkInterfaceId"] for each in found)


def _read(s3: Any, location: str) -> str | None:
    """Returns an object's text; None while there is none."""
    place = S3Address.of(location)
    try:
        body: bytes = s3.get_object(Bucket=place.bucket, Key=place.key)["Body"].read()
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            return None
        raise
    return body.decode("utf-8", "replace")
