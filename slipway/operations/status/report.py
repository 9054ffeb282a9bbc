"""`slipway status`: compares what an endpoint really serves with its stack and its files.

After a failed update SageMaker continues to serve the old configuration and calls it InService;
only the comparison shows this. Nothing here changes anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.names import KEPT_LOGS
from slipway.deployed import calls
from slipway.deployed.fields import running_instances
from slipway.deployed.served import Served, base_name, config_name, same_config, served_by
from slipway.deployed.traffic import Traffic, Watched, account_time, find_traffic, watched_metrics
from slipway.errors import Problem, UserError
from slipway.operations.deployment import Deployment, find_deployment, find_obstacle, told
from slipway.operations.logs import LogLine, last_lines
from slipway.operations.status.component import Component, other_components, read_component
from slipway.operations.status.differences import Difference, find_differences
from slipway.operations.status.rollback_causes import Trip, find_cause, find_trips
from slipway.planning.consequences import Consequences, consequences_of
from slipway.planning.described_alarms import scales
from slipway.planning.plan import DeploymentPlan

_CHANGING = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")


@dataclass(frozen=True)
class Variant:
    """A live production variant and its scaling bounds; counts are instances.

    `serverless` is its ServerlessConfig; None with instances. `running` has the instances of a
    pool by their type.
    """

    name: str
    instance_types: tuple[str, ...]
    current_instance_count: int
    desired_instance_count: int
    min_instance_count: int | None
    max_instance_count: int | None
    serverless: Mapping[str, int] | None = None
    running: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Alarm:
    """A CloudWatch alarm of the stack; one that scales is raised by load, not by a fault."""

    name: str
    state: str
    reason: str
    since: datetime
    scales: bool


@dataclass(frozen=True)
class EndpointStatus:
    """An endpoint as SageMaker describes it.

    `changed` is when the status last changed, in UTC. `answers` is where an asynchronous endpoint
    writes them. `component` are the copies of an endpoint that scales to zero, and `others`
    components of other models on it.
    """

    name: str
    status: str
    changed: datetime
    failure_reason: str | None
    served: Served
    variants: tuple[Variant, ...]
    answers: str | None = None
    component: Component | None = None
    others: tuple[str, ...] = ()

    @property
    def watched(self) -> list[Watched]:
        variants = [each.name for each in self.variants]
        component = self.component.name if self.component else None
        is_async = self.answers is not None
        return watched_metrics(self.name, variants, component, is_async=is_async)


@dataclass(frozen=True)
class Planned:
    image: str
    artifact: str


@dataclass(frozen=True)
class Status:
    """Everything `slipway status` shows.

    `planned` is None where the files make no plan; `differences` are their other settings.
    `declared` is what the stack's own endpoint configuration serves. `trips` are alarms that went
    off during the last deployment, if it was undone, and `cause` is the first error that its
    instances logged. `host` is the endpoint of another model that the copies run on. `traffic` is
    None where CloudWatch may not be asked.
    """

    planned: Planned | None
    differences: tuple[Difference, ...]
    endpoint: EndpointStatus | None
    deployment: Deployment | None
    declared: Served | None
    alarms: tuple[Alarm, ...]
    trips: tuple[Trip, ...]
    log_group: str
    log_lines: tuple[LogLine, ...]
    host: str | None = None
    traffic: Traffic | None = None
    cause: str | None = None

    @property
    def in_progress(self) -> bool:
        return bool(
            (self.deployment and self.deployment.in_progress)
            or (self.endpoint and self.endpoint.status in _CHANGING)
        )

    @property
    def is_being_deleted(self) -> bool:
        status = self.endpoint.status if self.endpoint else None
        return self._stack_status == "DELETE_IN_PROGRESS" or status == "Deleting"

    def troubles(self) -> list[str]:
        """Returns the problems that need attention, worst first; empty if all is well."""
        endpoint, stack = self._endpoint_troubles(), self._stack_troubles()
        obstacle = [told(self.obstacle)] if self.obstacle else []
        return [*endpoint, *stack, *obstacle, *self._alarm_troubles()]

    @property
    def obstacle(self) -> Problem | None:
        """Returns why nothing can be deployed as it is; None if something can."""
        endpoint, stack = self.endpoint, self.deployment
        name = stack.stack if stack else endpoint.name if endpoint else ""
        gone = endpoint.served.gone if endpoint and not self.in_progress else None
        has_endpoint = None if self.host else endpoint is not None
        return find_obstacle(name, stack, has_endpoint=has_endpoint, gone=gone)

    def notes(self) -> list[str]:
        if self._undone_without_loss:
            return [
                "a deployment failed and was undone; what is served is what the files say: "
                f"the stack is {self._stack_status}"
            ]
        if self.differences and not self.in_progress:
            count = len(self.differences)
            settings = "1 setting" if count == 1 else f"{count} settings"
            verb = "is" if count == 1 else "are"
            return [f"{settings} of the files {verb} not deployed; `cdk diff` shows the change"]
        component = self.endpoint.component if self.endpoint else None
        if component is not None and component.is_asleep:
            if component.desired_copies:
                return ["it wakes: a copy of the model is starting"]
            # An instance may run: for ten minutes more, or for other models on the endpoint.
            return ["it sleeps: no copy runs, and the next request wakes it within minutes"]
        return []

    def consequences(self, plan: DeploymentPlan) -> Consequences | None:
        """Returns what a deploy of the files' plan would do; None if nothing can be compared."""
        served = self.endpoint and self.endpoint.served
        if not served or served.image is None or self.planned is None:
            return None
        planned = self.planned
        settings = [(each.setting, each.deployed, each.files) for each in self.differences]
        files = [("image", served.image, planned.image)]
        name = "adapter.artifact" if plan.is_adapter else "artifact"
        files = [] if plan.is_adapter else files
        weights = [(name, served.artifact, planned.artifact)]
        return consequences_of([*files, *weights, *settings], plan)

    @property
    def _stack_status(self) -> str | None:
        return self.deployment.status if self.deployment else None

    @property
    def _undone_without_loss(self) -> bool:
        """Returns whether the last update was rolled back, and its change removed from the files.

        CloudFormation keeps the status until a later update has something to do.
        """
        if self._stack_status != "UPDATE_ROLLBACK_COMPLETE" or self.endpoint is None:
            return False
        served = self.endpoint.served
        is_planned = Planned(served.image or "", served.artifact or "") == self.planned
        return is_planned and not self.differences

    def _endpoint_troubles(self) -> Iterator[str]:
        if self.endpoint is None:
            name = f" {self.host}" if self.host else ""
            if not self.in_progress:  # not made yet, or deleted already
                yield f"there is no endpoint{name}: nothing is served"
            return
        if self.host and self.endpoint.component is None:
            yield f"no inference component of it is on {self.host}: nothing is served"
        status, reason = self.endpoint.status, self.endpoint.failure_reason
        if status not in ("InService", *_CHANGING):
            is_told = reason is not None and self._stack_tells(reason)
            why = "" if is_told else f": {reason or 'SageMaker gives no reason'}"
            yield f"the endpoint is {status}{why}"
        elif reason and not self._stack_tells(reason) and self._is_recent(self.endpoint.changed):
            yield f"the last change of the endpoint failed: {reason}"
        component = self.endpoint.component
        if component is not None and component.status == "Failed":
            reason = component.failure_reason or "SageMaker gives no reason"
            yield f"the inference component is Failed: {reason}"
        elif component is not None and component.failure_reason:
            reason = component.failure_reason
            if not self._stack_tells(reason) and self._is_recent(component.changed):
                yield f"the last change of the inference component failed: {reason}"
        served, declared = self.endpoint.served, self.declared
        if declared is not None and served.config != declared.config and not self.in_progress:
            yield (
                f"it serves {served.config}, not the {declared.config} that its stack declares: "
                "a silent rollback, or a change by hand"
            )

    def _is_recent(self, changed: datetime) -> bool:
        """Returns whether a change is not older than the last deployment.

        SageMaker keeps the reason of a failure until the next change of the endpoint.
        """
        return self.deployment is None or changed >= self.deployment.changed

    def _stack_tells(self, reason: str) -> bool:
        """Returns whether the stack's own report contains the endpoint's reason."""
        return self.deployment is not None and any(
            reason in failure for failure in self.deployment.failures
        )

    def _stack_troubles(self) -> Iterator[str]:
        if self.deployment is not None and self.deployment.failed and not self._undone_without_loss:
            operation = "deletion" if self.deployment.status == "DELETE_FAILED" else "deployment"
            what = "is being undone" if self.deployment.in_progress else "failed"
            # What is undone completely; after `--no-rollback` the failed state is still there.
            if self.deployment.status.endswith("ROLLBACK_COMPLETE"):
                what = "failed and was undone"
            yield f"the last {operation} {what}: the stack is {self.deployment.status}"
            yield from self.deployment.failures
            yield from map(str, self.trips)
            if self.cause is not None:
                yield f"the new instances' log has: {self.cause}"

    def _alarm_troubles(self) -> Iterator[str]:
        for alarm in self.alarms:
            if alarm.state == "ALARM" and not alarm.scales:
                yield f"alarm {alarm.name}: {alarm.reason}"


def find_status(
    name: str,
    access: Access,
    *,
    plan: DeploymentPlan | None,
    log_line_count: int,
    host: str | None = None,
) -> Status:
    """Looks at an endpoint, its stack, its alarms and its log.

    The name is the stack's, `MODEL-ENVIRONMENT`, and the endpoint's unless there is a host. Raises
    `UserError` if there is neither an endpoint nor a stack.
    """
    sagemaker = access.client("sagemaker")
    deployment = find_deployment(access.client("cloudformation"), name)
    described = calls.describe_endpoint(sagemaker, host or name)
    if deployment is None and (host or described is None):
        model, _, environment = name.rpartition("-")
        noun = "stack" if host else "stack and no endpoint"
        raise UserError.of(
            Code.NOT_DEPLOYED,
            f"{model} is not deployed in `{environment}`: there is no {noun} {name}",
            f"Deploy it with `cdk deploy {model} -c models={model} -c env={environment}`.",
        )
    endpoint = _endpoint(sagemaker, access, described, name) if described else None
    is_component = endpoint.component is not None if endpoint else bool(plan and plan.component)
    is_component = is_component or host is not None
    updated = calls.described_component(sagemaker, name) if is_component else described
    kind = "InferenceComponents" if is_component else "Endpoints"
    owner = (updated and is_component and base_name(updated)) or name
    group = f"/aws/sagemaker/{kind}/{owner}"
    lines = tuple(last_lines(access.client("logs"), group, log_line_count))
    if not lines and deployment and deployment.status.startswith("ROLLBACK"):
        # The log group is deleted, and the stack's function has kept its end.
        group = f"{KEPT_LOGS}{name}"
        lines = tuple(last_lines(access.client("logs"), group, log_line_count))
    cloudwatch = access.client("cloudwatch")
    alarms = list(calls.endpoint_alarms(cloudwatch, name))
    trips, cause = tuple[Trip, ...](), None
    if updated and deployment and "ROLLBACK" in deployment.status:
        trips = tuple(find_trips(cloudwatch, updated, alarms, deployment.changed))
        cause = find_cause(access.client("logs"), group, trips, deployment.changed)
    first = plan.served_by(plan.variants[0]) if plan else None
    differences: tuple[Difference, ...] = ()
    if plan and endpoint:
        config, is_protected = endpoint.served.config, bool(deployment and deployment.is_protected)
        differences = find_differences(plan, access, config, is_protected=is_protected)
    return Status(
        planned=None if first is None else Planned(first.image.uri, first.artifact.label),
        differences=differences,
        endpoint=endpoint,
        deployment=deployment,
        declared=_declared(sagemaker, endpoint, deployment),
        alarms=tuple(map(_alarm, alarms)),
        trips=trips,
        cause=cause,
        log_group=group,
        log_lines=lines,
        host=host,
        traffic=_traffic(access, endpoint) if endpoint else None,
    )


def _alarm(item: dict[str, Any]) -> Alarm:
    reason, since = item.get("StateReason", ""), item["StateUpdatedTimestamp"]
    return Alarm(item["AlarmName"], item["StateValue"], reason, since, scales(item))


def _traffic(access: Access, endpoint: EndpointStatus) -> Traffic | None:
    watched = [endpoint.watched]
    now, cloudwatch = account_time(access.client("sts")), access.client("cloudwatch")
    denied = ("AccessDenied", "AccessDeniedException")
    found = existing(lambda: find_traffic(cloudwatch, watched, now), *denied)
    return None if found is None else found[0]


def _declared(
    sagemaker: Any, endpoint: EndpointStatus | None, deployment: Deployment | None
) -> Served | None:
    arn = deployment.endpoint_config_arn if deployment else None
    if arn is None:
        return None
    if endpoint is not None and same_config(endpoint.served.config, arn):
        return endpoint.served
    return served_by(sagemaker, config_name(sagemaker, arn))[0]


def _endpoint(
    sagemaker: Any, access: Access, described: dict[str, Any], component_name: str
) -> EndpointStatus:
    name = described["EndpointName"]
    config = described["EndpointConfigName"]
    served, types, component = served_by(sagemaker, config, component_name)
    live = [
        *described.get("ProductionVariants", ()),
        *described.get("ShadowProductionVariants", ()),
    ]
    targets = calls.scaling_items(
        access.client("application-autoscaling"),
        "describe_scalable_targets",
        ResourceIds=[f"endpoint/{name}/variant/{item['VariantName']}" for item in live],
    )
    bounds = {
        target["ResourceId"].rpartition("/")[2]: (target["MinCapacity"], target["MaxCapacity"])
        for target in targets
    }
    variants = tuple(
        Variant(
            item["VariantName"],
            types.get(item["VariantName"], ()),
            item.get("CurrentInstanceCount", 0),
            item.get("DesiredInstanceCount", 0),
            *bounds.get(item["VariantName"], (None, None)),
            serverless=item.get("CurrentServerlessConfig"),
            running=running_instances(item),
        )
        for item in live
    )
    queue = described.get("AsyncInferenceConfig", {})
    return EndpointStatus(
        name=name,
        status=described["EndpointStatus"],
        changed=described["LastModifiedTime"],
        failure_reason=described.get("FailureReason"),
        served=served,
        variants=variants,
        answers=queue.get("OutputConfig", {}).get("S3OutputPath"),
        component=None if component is None else read_component(access, component),
        others=() if component is None else other_components(sagemaker, component),
    )
