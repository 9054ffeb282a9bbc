"""The operations on inference components."""

from collections.abc import Collection
from typing import Any

from slipway.embedded_aws.api import Caller, ValidationError
from slipway.embedded_aws.hosting.components.changes import ComponentChanges
from slipway.embedded_aws.hosting.components.component import (
    DELETING,
    SCALING,
    UPDATING,
    Adapter,
    Component,
)
from slipway.embedded_aws.hosting.components.requests import BASE, model_of, specification_of
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.rollout import component_rollout_of
from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext
from slipway.embedded_aws.hosting.fleets.updates import Background
from slipway.embedded_aws.hosting.resources.models import Models
from slipway.embedded_aws.hosting.resources.records import Records, now
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.embedded_aws.reported_refusals import ReportedRefusal


class Components:
    def __init__(
        self,
        context: HostingContext,
        models: Models,
        endpoints: Records[Endpoint],
        tags: Tags,
        quotas: EndpointQuotas,
        refused: Collection[ReportedRefusal],
    ) -> None:
        self._models = models
        self._endpoints = endpoints
        self._refused = refused
        self._background = Background()
        self.records: Records[Component] = Records(
            "InferenceComponent",
            noun="inference component",
            arn_type="inference-component",
            tags=tags,
        )
        self._changes = ComponentChanges(context, self._background, quotas, endpoints, self.records)

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        if self._background.closing.is_set():
            raise ValidationError("The embedded AWS is being stopped.")
        name = parameters["InferenceComponentName"]
        endpoint = self._endpoints.get(caller, parameters["EndpointName"])
        group = _group(endpoint, parameters.get("VariantName"))
        specification = specification_of(parameters)
        if BASE in specification:
            return self._create_adapter(caller, parameters, endpoint)
        model = model_of(self._models, caller, specification, group.settings_of_models)
        if "RuntimeConfig" not in parameters:
            raise ValidationError("An inference component needs a RuntimeConfig.")
        count = parameters["RuntimeConfig"]["CopyCount"]
        if count == 0 and ReportedRefusal.COPY_COUNT_0 in self._refused:
            raise ValidationError(ReportedRefusal.COPY_COUNT_0.message)
        arn = self.records.arn(caller, name)
        moment = now()
        component = Component(
            caller.region,
            name,
            arn,
            endpoint,
            group.name,
            specification,
            model,
            count,
            moment,
            moment,
        )
        self.records.add(caller, component, parameters.get("Tags", ()))
        self._background.start(lambda: self._changes.bring_up(component))
        return {"InferenceComponentArn": arn}

    def _create_adapter(
        self, caller: Caller, parameters: dict[str, Any], endpoint: Endpoint
    ) -> dict[str, Any]:
        name, specification = parameters["InferenceComponentName"], parameters["Specification"]
        base = self.records.get(caller, specification[BASE])
        if base.endpoint is not endpoint or isinstance(base, Adapter):
            raise ValidationError(
                f'"{base.name}" is no base component on the endpoint "{endpoint.name}".'
            )
        arn, moment = self.records.arn(caller, name), now()
        adapter = Adapter(
            caller.region,
            name,
            arn,
            endpoint,
            base.variant_name,
            specification,
            base.model,
            0,
            moment,
            moment,
            base=base,
        )
        self.records.add(caller, adapter, parameters.get("Tags", ()))
        self._background.start(lambda: self._changes.bring_up_adapter(adapter))
        return {"InferenceComponentArn": arn}

    def _update_adapter(self, adapter: Adapter, parameters: dict[str, Any]) -> dict[str, Any]:
        specification = specification_of(parameters)
        if specification.get(BASE) != adapter.base.name:
            raise ValidationError(f'"{adapter.name}" stays an adapter of "{adapter.base.name}".')
        with adapter.lock:
            adapter.require_settled("update")
            self._require_working(adapter)
            adapter.progress = UPDATING
        self._background.start(lambda: self._changes.replace_adapter(adapter, specification))
        return {"InferenceComponentArn": adapter.arn}

    def update(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        component = self.records.get(caller, parameters["InferenceComponentName"])
        if not parameters.keys() & {"Specification", "Specifications", "RuntimeConfig"}:
            raise ValidationError("An update needs a Specification or a RuntimeConfig.")
        if isinstance(component, Adapter):
            return self._update_adapter(component, parameters)
        group = _group(component.endpoint, component.variant_name)
        specification = component.specification
        if parameters.keys() & {"Specification", "Specifications"}:
            specification = specification_of(parameters)
        model = model_of(self._models, caller, specification, group.settings_of_models)
        runtime = parameters.get("RuntimeConfig", {})
        count: int = runtime.get("CopyCount", component.desired_count)
        config = parameters.get("DeploymentConfig")
        rollout = component_rollout_of(config, count)
        with component.lock:
            component.require_settled("update")
            self._require_working(component)
            component.progress = UPDATING
            component.deployment_config = config
        if specification == component.specification and model == component.model:
            self._background.start(lambda: self._changes.scale(component, count))
        else:
            self._background.start(
                lambda: self._changes.replace(component, specification, model, count, rollout)
            )
        return {"InferenceComponentArn": component.arn}

    def update_runtime(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        component = self.records.get(caller, parameters["InferenceComponentName"])
        if isinstance(component, Adapter):
            raise ValidationError(f'"{component.name}" is an adapter, which has no copies.')
        _group(component.endpoint, component.variant_name)
        count = parameters["DesiredRuntimeConfig"]["CopyCount"]
        with component.lock:
            component.require_settled("update")
            self._require_working(component)
            component.progress = SCALING
            component.desired_count = count
        self._background.start(lambda: self._changes.scale(component, count))
        return {"InferenceComponentArn": component.arn}

    def delete(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        component = self.records.get(caller, parameters["InferenceComponentName"])
        if left := [each.name for each in self._adapters_of(component)]:
            raise ValidationError(
                f'Cannot delete inference component "{component.arn}": it has the adapters '
                f"{', '.join(left)}."
            )
        with component.lock:
            component.require_settled("delete")
            component.progress = DELETING
        self._background.start(lambda: self._remove(component))
        return {}

    def abandon(self, endpoint: Endpoint) -> None:
        """Stops the copies on a deleted endpoint; the components stay, and have no copies.

        https://github.com/huggingface/skills, hf-cloud-sagemaker (read 2026-11-24): components
        outlive their endpoint and keep their names.
        """
        for component in self.on(endpoint):
            self._changes.take_down(component)

    def on(self, endpoint: Endpoint) -> list[Component]:
        return [each for each in self.records.all(endpoint.region) if each.endpoint is endpoint]

    def close(self) -> None:
        self._background.closing.set()
        components = self.records.all()
        for component in components:
            for copy in component.every_copy():
                copy.request_stop()
        self._background.join()
        for component in components:
            self._changes.take_down(component)

    def _require_working(self, component: Component) -> None:
        if component.is_failed:
            raise ValidationError(
                f'Cannot update inference component "{component.arn}" in status Failed: it can '
                "only be deleted."
            )

    def _adapters_of(self, base: Component) -> list[Adapter]:
        components = self.records.all(base.region)
        return [each for each in components if isinstance(each, Adapter) and each.base is base]

    def _remove(self, component: Component) -> None:
        if isinstance(component, Adapter):
            component.files.unload(component.base.every_copy())
        self._changes.take_down(component)
        self.records.remove(component.region, component)


def _group(endpoint: Endpoint, variant_name: str | None) -> InstanceGroup:
    with endpoint.lock:
        if endpoint.status != "InService" or endpoint.live is None:
            raise ValidationError(
                f'Endpoint "{endpoint.arn}" is {endpoint.status}. It must be InService to host an '
                "inference component."
            )
        groups = endpoint.live.groups
    if not groups:
        raise ValidationError(
            f'Endpoint "{endpoint.arn}" does not host inference components: the variants of its '
            "endpoint configuration name models."
        )
    if variant_name is None:
        if len(groups) > 1:
            raise ValidationError(f'VariantName is required, because "{endpoint.arn}" has several.')
        return next(iter(groups.values()))
    if variant_name not in groups:
        raise ValidationError(
            f'The endpoint "{endpoint.arn}" has no variant named "{variant_name}".'
        )
    return groups[variant_name]
