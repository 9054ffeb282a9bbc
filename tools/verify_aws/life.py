"""The stages between checks and removal: commands that a user would type, and their effects."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.deployed.calls import endpoint_alarms
from tools.verify_aws.commands import CommandError, Session
from tools.verify_aws.project import (
    CHANGED_LATENCY,
    ENVIRONMENT,
    FIRST_LATENCY,
    MODEL,
    Settings,
    write_config,
)
from tools.verify_aws.report import CheckError
from tools.verify_aws.stacks import bucket_exists, pauses

TEXT = "slipway"
TEXT_REVERSED = "yawpils"
# CloudWatch shows metrics that SageMaker publishes each minute; a new instance's come later.
METRICS_SECONDS = 600.0
# One metric of requests, and one that SageMaker publishes with the execution role's own right.
_METRICS = (("AWS/SageMaker", "Invocations"), ("/aws/sagemaker/Endpoints", "MemoryUtilization"))

Stages = Iterator[tuple[str, Callable[[], str]]]


class Life:
    """One endpoint's life.

    Args:
        session: runs the commands.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._target = session.deployment.target
        self._access = session.deployment.access
        self.key_arn: str | None = self._target.artifact_key_arn

    def stages(self) -> Stages:
        """Yields names and functions in order; each function returns its finding."""
        yield "deploy foundation", self._foundation
        yield "publish", self._publish
        yield "plan", self._plan
        yield "preflight", self._preflight
        yield "deploy endpoint", self._deploy
        yield "invoke", self._invoke
        yield "what is declared", self._declared
        yield "metrics", self._metrics
        yield "change an alarm", self._change
        yield "status", self._status

    def _foundation(self) -> str:
        environment = self._target.environment
        buckets = (environment.artifact_bucket, environment.access_log_bucket)
        known = [name for name in buckets if bucket_exists(self._access, name)]
        adopt = ("--import-existing-resources",) if known else ()
        self._session.deploy("foundation", MODEL, *adopt)
        name = f"{environment.parameter_prefix}artifact-key-arn"
        found = self._access.client("ssm").get_parameter(Name=name)
        self.key_arn = found["Parameter"]["Value"]
        how = f", with the {len(known)} buckets of an earlier run" if known else ""
        return f"{self._target.foundation} is deployed{how}"

    def _publish(self) -> str:
        self._session.slipway("publish", MODEL)
        return f"the model's files are in s3://{self._target.environment.artifact_bucket}"

    def _plan(self) -> str:
        self._session.slipway("plan", MODEL)
        return f"{self._target.endpoint} can be deployed"

    def _preflight(self) -> str:
        checks = self._session.slipway("preflight", MODEL)["checks"]
        return f"{len(checks)} checks passed"

    def _deploy(self) -> str:
        try:
            # A rollback would delete the container's log.
            self._session.deploy(MODEL, MODEL, "--exclusively", "--no-rollback")
        except CommandError as error:
            raise CommandError(f"{error}\n{self._why()}") from None
        return f"{self._target.endpoint} is deployed"

    def _why(self) -> str:
        """Returns the account's reason for an endpoint that was not deployed."""
        try:
            return self._session.command(
                "slipway", "status", MODEL, "--lines", "30", "--env", ENVIRONMENT
            )
        except CommandError as error:
            return str(error)

    def _invoke(self) -> str:
        request = json.dumps({"inputs": TEXT})
        found = self._session.slipway("invoke", MODEL, request)
        if found["answer"] != {"reversed": TEXT_REVERSED}:
            raise CheckError(f"the endpoint answered {found['answer']!r}")
        return f"the handler answered in {found['latency_milliseconds']:.0f} ms"

    def _declared(self) -> str:
        endpoint = self._target.endpoint
        targets = self._access.client("application-autoscaling").describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[f"endpoint/{endpoint}/variant/AllTraffic"]
        )["ScalableTargets"]
        if not targets:
            raise CheckError(f"no scalable target of {endpoint} is registered")
        self._require_latency(FIRST_LATENCY)
        groups = self._access.client("logs").describe_log_streams(
            logGroupName=f"/aws/sagemaker/Endpoints/{endpoint}"
        )
        if not groups["logStreams"]:
            raise CheckError(f"the container of {endpoint} has no log stream")
        alarms = self._alarms()
        return f"{len(alarms)} alarms, a scalable target and a log are there"

    def _metrics(self) -> str:
        """Waits for both kinds of metrics; an alarm on a missing metric would never be raised."""
        cloudwatch = self._access.client("cloudwatch")
        missing, waits = list(_METRICS), pauses()
        until = self._session.until(METRICS_SECONDS)
        while missing:
            missing = [metric for metric in missing if not self._has_values(cloudwatch, *metric)]
            if not missing:
                break
            if time.monotonic() > until:
                names = " and ".join(f"{name} in {namespace}" for namespace, name in missing)
                raise CheckError(f"CloudWatch has no value of {names}")
            time.sleep(next(waits))
        return f"CloudWatch has values of {' and '.join(name for _, name in _METRICS)}"

    def _has_values(self, cloudwatch: Any, namespace: str, name: str) -> bool:
        now = datetime.now(UTC)
        found = cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[
                {"Name": "EndpointName", "Value": self._target.endpoint},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            StartTime=now - timedelta(hours=3),
            EndTime=now + timedelta(minutes=5),
            Period=60,
            Statistics=["Maximum"],
        )
        return any(point["Maximum"] > 0 for point in found["Datapoints"])

    def _change(self) -> str:
        before = self._served()
        changed = Settings(self._target.instance_type, latency=CHANGED_LATENCY)
        write_config(self._session.deployment.folder, self._target, changed)
        self._session.deploy(MODEL, MODEL, "--exclusively")
        self._require_latency(CHANGED_LATENCY)
        if self._served() != before:
            raise CheckError("the change of an alarm replaced what the endpoint serves")
        return f"the latency alarm goes off at {CHANGED_LATENCY} ms now, and nothing else changed"

    def _status(self) -> str:
        troubles = self._session.slipway("status", MODEL)["troubles"]
        if troubles:
            raise CheckError("; ".join(troubles))
        return "no trouble"

    def _served(self) -> str:
        sagemaker = self._access.client("sagemaker")
        name: str = sagemaker.describe_endpoint(EndpointName=self._target.endpoint)[
            "EndpointConfigName"
        ]
        return name

    def _alarms(self) -> list[dict[str, Any]]:
        return list(endpoint_alarms(self._access.client("cloudwatch"), self._target.endpoint))

    def _require_latency(self, milliseconds: int) -> None:
        """Raises CheckError if no alarm has that threshold, in SageMaker's microseconds."""
        thresholds = sorted(alarm["Threshold"] for alarm in self._alarms())
        if milliseconds * 1000 not in thresholds:
            raise CheckError(
                f"no alarm goes off at {milliseconds * 1000} microseconds, but at {thresholds}"
            )
