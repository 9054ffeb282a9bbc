"""The stages between checks and removal: commands that a user would type, and their effects."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tools.verify_aws.account import awaited, bucket_exists
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.project import CHANGED_LATENCY, ENVIRONMENT, MODEL, Settings, write_config

TEXT = "slipway"
TEXT_REVERSED = "yawpils"
# CloudWatch shows metrics that SageMaker publishes each minute; a new instance's come later.
METRICS_SECONDS = 600.0
# One metric of requests, and one that SageMaker publishes with the execution role's own right.
_METRICS = (("AWS/SageMaker", "Invocations"), ("/aws/sagemaker/Endpoints", "MemoryUtilization"))


class Life:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._target = session.target
        self._access = session.access
        self.key_arn: str | None = self._target.artifact_key_arn
        self._served: str | None = None

    def stages(self) -> Iterator[tuple[str, Callable[[], str]]]:
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
            try:
                why = self._told_status("30")
            except CommandError as told:
                why = str(told)
            raise CommandError(f"{error}\n{why}") from None
        return f"{self._target.endpoint} is deployed"

    def _invoke(self) -> str:
        found = invoke(self._session, MODEL)
        return f"the handler answered in {found['latency_milliseconds']:.0f} ms"

    def _declared(self) -> str:
        found = self._as_planned()
        if any(each["min_instance_count"] is None for each in found["endpoint"]["variants"]):
            raise CheckError(f"no scalable target of {self._target.endpoint} is registered")
        if not found["log_lines"]:
            raise CheckError(f"the container of {self._target.endpoint} has no log line")
        self._served = found["endpoint"]["served"]["config"]
        return f"{len(found['alarms'])} alarms, a scalable target and a log are there"

    def _as_planned(self) -> dict[str, Any]:
        found = self._session.slipway("status", MODEL)
        if found["differences"]:
            raise CheckError(f"not deployed as the files say: {json.dumps(found['differences'])}")
        return found

    def _metrics(self) -> str:
        """Waits for both kinds of metrics; an alarm on a missing metric would never be raised."""
        cloudwatch, until = self._access.client("cloudwatch"), self._session.until(METRICS_SECONDS)
        for namespace, name in _METRICS:
            awaited(
                partial(self._values, cloudwatch, namespace, name),
                until=until,
                missing=f"CloudWatch has no value of {name} in {namespace}",
            )
        return f"CloudWatch has values of {' and '.join(name for _, name in _METRICS)}"

    def _values(self, cloudwatch: Any, namespace: str, name: str) -> list[float] | None:
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
        return [each["Maximum"] for each in found["Datapoints"] if each["Maximum"] > 0] or None

    def _change(self) -> str:
        changed = Settings(self._target.instance_type, latency=CHANGED_LATENCY)
        write_config(self._session.folder, self._target, changed)
        self._session.deploy(MODEL, MODEL, "--exclusively")
        if self._as_planned()["endpoint"]["served"]["config"] != self._served:
            raise CheckError("the change of an alarm replaced what the endpoint serves")
        return f"the latency alarm goes off at {CHANGED_LATENCY} ms now, and nothing else changed"

    def _status(self) -> str:
        self._told_status("0")
        return "no trouble"

    def _told_status(self, lines: str) -> str:
        """Returns what `slipway status` says to people; it fails where there is any trouble."""
        return self._session.command(
            "slipway", "status", MODEL, "--lines", lines, "--env", ENVIRONMENT
        )


def invoke(session: Session, model: str) -> dict[str, Any]:
    """Sends a request to a model; raises `CheckError` if the answer is not its handler's."""
    found = session.slipway("invoke", model, json.dumps({"inputs": TEXT}))
    if found["answer"] != {"reversed": TEXT_REVERSED}:
        raise CheckError(f"The endpoint answered {json.dumps(found['answer'])}.")
    return found
