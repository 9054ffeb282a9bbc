"""Endpoints: created, updated and deleted in the background, as SageMaker does it.

A change returns at once. A thread starts the new fleet beside the old one, moves the traffic, and
stops the fleet that is no longer needed. A failure leaves the endpoint on its previous fleet.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.clock import Deadline
from slipway.embedded_aws.hosting.asynchronous.queue import AsyncQueues
from slipway.embedded_aws.hosting.components.service import Components
from slipway.embedded_aws.hosting.endpoints.scalable_variants import check_update, deregister
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint, running_instances
from slipway.embedded_aws.hosting.fleets.fleet import Fleet
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.rollout import Rollout, rollout_of
from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext, RunningVariant
from slipway.embedded_aws.hosting.fleets.serverless import ServerlessCopy, ServerlessVariant
from slipway.embedded_aws.hosting.fleets.updates import Background, TimeLimit, watch
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError, available_type
from slipway.embedded_aws.hosting.resources.component_variants import hosts_components
from slipway.embedded_aws.hosting.resources.endpoint_configs import choices
from slipway.embedded_aws.hosting.resources.records import Declared, Records, now
from slipway.embedded_aws.quotas import EndpointQuotas

logger = logging.getLogger(__name__)

_IN_PROGRESS = ("Creating", "Updating", "Deleting", "RollingBack", "SystemUpdating")
# Longer than any request may take, so that a fleet is never stopped during a request.
_DRAIN_SECONDS = 65.0
_ALARM_POLL_SECONDS = 1.0
# AWS takes minutes to give back interfaces and grants. Like the waits of functions, which look for
# them, this wait does not follow the time scale; a minute that is passed over ends it.
_RELEASE_SECONDS = 2.0
# An asynchronous request may take an hour (InvocationTimeoutSeconds).
_ASYNC_DRAIN_SECONDS = 3600.0


@dataclass(eq=False)
class Endpoints:
    _context: HostingContext
    _models: Records[Declared]
    _configs: Records[Declared]
    records: Records[Endpoint]
    _components: Components
    _queues: AsyncQueues
    _quotas: EndpointQuotas
    _background: Background = field(default_factory=Background)

    def __post_init__(self) -> None:
        self._closing = self._background.closing

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        name = parameters["EndpointName"]
        config = self._configs.get(caller, parameters["EndpointConfigName"])
        fleet = self._fleet(caller, name, config)
        deployment = parameters.get("DeploymentConfig")
        rollout_of(deployment, instance_count=fleet.smallest_count)
        self._quotas.check(
            caller.region, used=self._running(caller.region), wanted=fleet.instances()
        )
        arn = self.records.arn(caller, name)
        moment = now()
        is_asynchronous = fleet.async_settings is not None
        endpoint = Endpoint(caller.region, name, arn, config.name, moment, moment, is_asynchronous)
        endpoint.pending = fleet
        endpoint.deployment_config = deployment
        self.records.add(caller, endpoint, parameters.get("Tags", ()))
        if is_asynchronous:
            self._queues.open(endpoint)
        self._background.start(lambda: self._bring_up(endpoint, fleet))
        return {"EndpointArn": arn}

    def describe(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        endpoint = self.records.get(caller, parameters["EndpointName"])
        works = self._context.captures.works(endpoint.region, endpoint.name)
        return endpoint.describe(captures=works)

    def update(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        endpoint = self.records.get(caller, parameters["EndpointName"])
        config = self._configs.get(caller, parameters["EndpointConfigName"])
        fleet = self._fleet(caller, endpoint.name, config)
        retained = parameters.get("RetainAllVariantProperties", False)
        excluded = parameters.get("ExcludeRetainedVariantProperties", [])
        if excluded and not retained:
            raise ValidationError(
                "ExcludeRetainedVariantProperties needs RetainAllVariantProperties true."
            )
        # Before this endpoint's lock, because it takes the locks of all.
        running = self._running(caller.region)
        with endpoint.lock:
            live = self._require_in_service(endpoint)
            # SageMaker refuses in these words if a configuration was deleted too early.
            self._configs.get(caller, live.config.name)
            if config.name == live.config.name:
                # https://github.com/mikegc-aws/strands-decider-triton, deploy/create_endpoint.py
                # quotes it (read 2026-11-28).
                raise ValidationError(
                    "Cannot update endpoint with the currently in use endpoint configuration "
                    f'"{config.name}"'
                )
            check_update(
                self._scaling(caller.region), endpoint.name, live.declared(), fleet.declared()
            )
            if (live.async_settings is None) != (fleet.async_settings is None):
                # https://github.com/aws/sagemaker-python-sdk/pull/3124 quotes the removal (read
                # 2026-11-28). The words for the other direction are not public.
                change = "added to" if live.async_settings is None else "removed from"
                raise ValidationError(
                    f"The AsyncInferenceConfig parameter cannot be {change} this endpoint "
                    f"{endpoint.name}."
                )
            self._check_hosting(endpoint, live, fleet)
            if retained:
                fleet.retain(live, {item["VariantPropertyType"] for item in excluded})
            deployment = parameters.get("DeploymentConfig")
            if parameters.get("RetainDeploymentConfig"):
                deployment = endpoint.deployment_config
            rollout = rollout_of(
                deployment,
                instance_count=fleet.smallest_count,
                variant_count=len(fleet.variants),
            )
            self._quotas.check(caller.region, used=running, wanted=fleet.instances(rollout.beside))
            endpoint.deployment_config = deployment
            endpoint.pending = fleet
            endpoint.failure_reason = None
            self._set_status(endpoint, "Updating")
        self._background.start(lambda: self._replace(endpoint, live, fleet, rollout))
        return {"EndpointArn": endpoint.arn}

    def update_weights(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        endpoint = self.records.get(caller, parameters["EndpointName"])
        with endpoint.lock:
            live = self._require_in_service(endpoint)
            changes = parameters["DesiredWeightsAndCapacities"]
            for change in changes:
                self._check_change(endpoint, live, change)
            before = {name: variant.instance_count for name, variant in live.variants.items()}
            for change in changes:
                variant = live.every_variant[change["VariantName"]]
                variant.weight = float(change.get("DesiredWeight", variant.weight))
                variant.instance_count = change.get("DesiredInstanceCount", variant.instance_count)
            endpoint.failure_reason = None
            self._set_status(endpoint, "Updating")
        self._background.start(lambda: self._resize(caller, endpoint, live, before))
        return {"EndpointArn": endpoint.arn}

    def delete(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        endpoint = self.records.get(caller, parameters["EndpointName"])
        with endpoint.lock:
            self._refuse_in_progress(endpoint)
            variants = endpoint.live.variants if endpoint.live else ()
            deregister(self._scaling(caller.region), endpoint.name, variants)
            self._set_status(endpoint, "Deleting")
        self._background.start(lambda: self._tear_down(endpoint))
        return {}

    def close(self) -> None:
        self._closing.set()
        endpoints = self.records.all()
        for endpoint in endpoints:
            self._queues.drop(endpoint)
            for fleet in endpoint.fleets():
                fleet.request_stop()
        self._background.join()
        for endpoint in endpoints:
            for fleet in endpoint.fleets():
                fleet.stop()

    def _fleet(self, caller: Caller, endpoint_name: str, config: Declared) -> Fleet:
        if self._closing.is_set():
            raise ValidationError("The embedded AWS is being stopped.")
        declared = config.parameters["ProductionVariants"]
        if hosts_components(declared[0]):
            without_capacity = self._context.without_capacity
            groups = [
                InstanceGroup(each, config.parameters, config.name, without_capacity)
                for each in declared
            ]
            return Fleet(config, groups, now())
        production, shadows = (
            [self._variant(caller, endpoint_name, config, each) for each in variants]
            for variants in (declared, config.parameters.get("ShadowProductionVariants", ()))
        )
        shadow = next((each for each in shadows if isinstance(each, RunningVariant)), None)
        return Fleet(config, production, now(), shadow)

    def _running(self, region: str) -> Counter[str]:
        return running_instances(self.records.all(region))

    def _variant(
        self,
        caller: Caller,
        endpoint_name: str,
        config: Declared,
        declared: Mapping[str, Any],
    ) -> RunningVariant | ServerlessVariant:
        model_names = dict(choices(declared))
        chosen = available_type(list(model_names), self._context.without_capacity)
        given: dict[str, Any] = {
            "region": caller.region,
            "endpoint_name": endpoint_name,
            "config_name": config.name,
            "model": self._models.get(caller, model_names[chosen]).parameters,
            "volume_key": config.parameters.get("KmsKeyId"),
        }
        if "ServerlessConfig" not in declared:
            return RunningVariant(self._context, declared=declared, **given)
        return ServerlessVariant(
            declared,
            config.name,
            lambda variant, of_copy: ServerlessCopy(
                variant, self._context, declared=of_copy, **given
            ),
        )

    def stop_idle(self) -> None:
        for endpoint in self.records.all():
            with endpoint.lock:
                variants = [each for fleet in endpoint.fleets() for each in fleet.serverless]
                idle = [copy for variant in variants for copy in variant.take_idle()]
            for copy in idle:
                copy.stop()

    def _scaling(self, region: str) -> Any:
        return self._context.clients.client("application-autoscaling", region)

    def _refuse_in_progress(self, endpoint: Endpoint) -> None:
        if endpoint.status in _IN_PROGRESS:
            raise ValidationError(f'Cannot update in-progress endpoint "{endpoint.arn}".')

    def _require_in_service(self, endpoint: Endpoint) -> Fleet:
        self._refuse_in_progress(endpoint)
        if endpoint.live is None:
            raise ValidationError(
                f'Cannot update endpoint "{endpoint.arn}" in status {endpoint.status}: '
                "a failed endpoint can only be deleted."
            )
        return endpoint.live

    def _check_hosting(self, endpoint: Endpoint, live: Fleet, wanted: Fleet) -> None:
        """Refuses an update that would take the instances from the endpoint's components."""
        if wanted.serverless and not live.serverless:
            # AWS's guide says that this is a ValidationError; its words are not public.
            raise ValidationError(
                f"Cannot update the instances of endpoint {endpoint.name} to serverless."
            )
        if bool(live.groups) != bool(wanted.groups):
            raise ValidationError(
                "The embedded AWS does not emulate an update between variants with models and "
                "variants that host inference components: AWS does not document it."
            )
        lost = {component.variant_name for component in self._components.on(endpoint)}
        for name in sorted(lost - wanted.groups.keys()):
            raise ValidationError(
                f'Variant "{name}" hosts inference components and cannot be removed from endpoint '
                f'"{endpoint.arn}".'
            )

    def _check_change(self, endpoint: Endpoint, live: Fleet, change: Mapping[str, Any]) -> None:
        name = change["VariantName"]
        if name not in live.every_variant:
            raise ValidationError(f'The endpoint "{endpoint.arn}" has no variant named "{name}".')
        if "ServerlessUpdateConfig" in change:
            raise ValidationError("The embedded AWS does not emulate ServerlessUpdateConfig.")
        if "DesiredInstanceCount" in change and name in live.groups:
            raise ValidationError(
                f'The embedded AWS does not emulate DesiredInstanceCount of variant "{name}": its '
                "instances follow the copies of its inference components."
            )
        if change.get("DesiredInstanceCount") == 0 and live.async_settings is None:
            raise ValidationError(
                f'DesiredInstanceCount 0 of variant "{name}" needs an asynchronous endpoint. A '
                "real-time endpoint has no instances only if it hosts inference components."
            )

    def _resize(
        self, caller: Caller, endpoint: Endpoint, live: Fleet, before: Mapping[str, int]
    ) -> None:
        """Stops the container of a variant without instances, and starts it again with some.

        Between other numbers of instances no process starts or stops, but the statuses are the
        same.
        """
        for name, variant in list(live.variants.items()):
            if not isinstance(variant, RunningVariant):
                continue
            if before[name] and not variant.instance_count:
                variant.drain(_ASYNC_DRAIN_SECONDS * self._context.time_scale)
                variant.stop()
            elif variant.instance_count and not before[name]:
                again = self._variant(caller, endpoint.name, live.config, variant.declared)
                again.instance_count, again.weight = variant.instance_count, variant.weight
                try:
                    again.start()
                except VariantStartError as error:
                    again.stop()
                    with endpoint.lock:
                        variant.instance_count = 0
                        endpoint.failure_reason = str(error)
                    continue
                with endpoint.lock:
                    live.variants[name] = again
        self._set_status(endpoint, "InService")

    def _bring_up(self, endpoint: Endpoint, fleet: Fleet) -> None:
        try:
            fleet.start()
        except VariantStartError as error:
            with endpoint.lock:
                endpoint.pending = None
                endpoint.failure_reason = str(error)
                self._set_status(endpoint, "Failed")
            return
        with endpoint.lock:
            endpoint.live, endpoint.pending = fleet, None
            self._set_status(endpoint, "InService")

    def _replace(self, endpoint: Endpoint, old: Fleet, new: Fleet, rollout: Rollout) -> None:
        limit = TimeLimit(rollout.limit_seconds, self._context.time_scale, new.request_stop)
        try:
            new.start()
            self._shift(endpoint, new, rollout, limit)
        except VariantStartError as error:
            limit.cancel()
            with endpoint.lock:
                endpoint.pending, endpoint.pending_share = None, 0.0
                endpoint.retiring.append(new)
                endpoint.failure_reason = limit.reason or str(error)
            # The endpoint is InService only after everything of the failed attempt was stopped.
            self._retire(endpoint, new)
            self._set_status(endpoint, "InService")
            return
        with endpoint.lock:
            endpoint.live, endpoint.pending, endpoint.pending_share = new, None, 0.0
            endpoint.config_name = new.config.name
            endpoint.retiring.append(old)
        if rollout.termination_wait_seconds == 0:
            self._retire(endpoint, old)
            self._set_status(endpoint, "InService")
        else:
            self._set_status(endpoint, "InService")
            self._await(self._context.deadline(rollout.termination_wait_seconds))
            self._retire(endpoint, old)

    def _shift(self, endpoint: Endpoint, new: Fleet, rollout: Rollout, limit: TimeLimit) -> None:
        for share in rollout.shares:
            with endpoint.lock:
                endpoint.pending_share = share
            watch(self._context, endpoint.region, new.role, rollout, self._closing, limit)
        limit.cancel()
        limit.check()

    def _retire(self, endpoint: Endpoint, fleet: Fleet) -> None:
        if not self._closing.is_set():
            fleet.drain(_DRAIN_SECONDS)
        fleet.stop()
        with endpoint.lock:
            endpoint.retiring.remove(fleet)

    def _tear_down(self, endpoint: Endpoint) -> None:
        self._queues.drop(endpoint)
        with contextlib.ExitStack() as attached:
            for fleet in endpoint.fleets():
                for variant in fleet.every_variant.values():
                    if isinstance(variant, RunningVariant):
                        attached.push(variant.attached.pop_all())
                fleet.stop()
            self._components.abandon(endpoint)
            self.records.remove(endpoint.region, endpoint)
            self._await(Deadline(self._context.clock, _RELEASE_SECONDS, time_scale=1.0))

    def _await(self, deadline: Deadline) -> None:
        while (remaining := deadline.remaining_seconds()) > 0:
            if self._closing.wait(min(remaining, _ALARM_POLL_SECONDS)):
                break

    def _set_status(self, endpoint: Endpoint, status: str) -> None:
        with endpoint.lock:
            endpoint.status = status
            endpoint.modified = now()
        logger.info("endpoint %s is %s", endpoint.name, status)
