"""Starts, stops and replaces the copies of inference components, in the background."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.hosting.components.component import Adapter, Component, copies_on
from slipway.embedded_aws.hosting.fleets.endpoint import (
    AdapterFiles,
    Endpoint,
    running_instances,
)
from slipway.embedded_aws.hosting.fleets.fleet import start_together
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup, next_machine
from slipway.embedded_aws.hosting.fleets.machine import Machine
from slipway.embedded_aws.hosting.fleets.placement import (
    TOO_SMALL,
    Copy,
    Size,
    place,
    size_of_copy,
)
from slipway.embedded_aws.hosting.fleets.rollout import ComponentRollout
from slipway.embedded_aws.hosting.fleets.running_variant import (
    AdapterError,
    HostingContext,
    RunningVariant,
)
from slipway.embedded_aws.hosting.fleets.updates import Background, TimeLimit, watch
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError
from slipway.embedded_aws.hosting.resources.records import Records, now
from slipway.embedded_aws.quotas import EndpointQuotas

logger = logging.getLogger(__name__)

# Longer than any request may take, so that a copy is never stopped during a request.
_DRAIN_SECONDS = 65.0


@dataclass(eq=False)
class ComponentChanges:
    _context: HostingContext
    _background: Background
    _quotas: EndpointQuotas
    _endpoints: Records[Endpoint]
    _components: Records[Component]
    # One placement at a time, so that two components do not take the same room.
    _placing: threading.Lock = field(default_factory=threading.Lock)

    def bring_up(self, component: Component) -> None:
        """Starts the first copies; without all of them the component is Failed."""
        reason = self._grow(component, component.desired_count)
        if reason is None:
            self._settle(component)
            return
        self._stop(component, list(component.copies))
        with component.lock:
            component.is_failed = True
        self._settle(component, reason)

    def scale(self, component: Component, wanted: int) -> None:
        """AWS does not document what a component shows after a change of its count that fails."""
        reason = None
        if wanted > len(component.copies):
            reason = self._grow(component, wanted)
        else:
            self._stop(component, component.copies[wanted:])
        with component.lock:
            component.desired_count = len(component.copies)
        self._settle(component, reason)

    def replace(
        self,
        component: Component,
        specification: Mapping[str, Any],
        model: Mapping[str, Any],
        count: int,
        rollout: ComponentRollout,
    ) -> None:
        """Replaces every copy, in batches; after a failure the old copies stay."""
        limit = TimeLimit(rollout.limit_seconds, self._context.time_scale, lambda: None)
        role = component.model.get("ExecutionRoleArn")
        size = size_of_copy(specification["ComputeResourceRequirements"])
        try:
            while len(component.pending) < count:
                batch = min(rollout.batch, count - len(component.pending))
                started = self._start(component, model, specification, [size] * batch)
                with component.lock:
                    component.pending += started
                    component.pending_share = len(component.pending) / count
                watch(
                    self._context,
                    component.region,
                    role,
                    rollout,
                    self._background.closing,
                    limit,
                )
        except VariantStartError as error:
            self._undo(component, str(error))
            return
        finally:
            limit.cancel()
        with component.lock:
            old, component.copies = component.copies, component.pending
            component.pending, component.pending_share = [], 0.0
            component.specification, component.model = specification, model
            component.desired_count = count
            component.retiring += old
        self._retire(component, old)
        self._settle(component)

    def bring_up_adapter(self, adapter: Adapter) -> None:
        """Loads an adapter into the copies of its base; without success it is Failed."""
        reason = _load(adapter, adapter.files)
        with adapter.lock:
            adapter.is_failed = reason is not None
        self._settle(adapter, reason)

    def replace_adapter(self, adapter: Adapter, specification: Mapping[str, Any]) -> None:
        """Loads the new files, then unloads the old ones; after a failure the old ones stay."""
        new = adapter.next_files(specification["Container"]["ArtifactUrl"])
        reason = _load(adapter, new)
        with adapter.lock:
            left = new
            if reason is None:
                left, adapter.files, adapter.specification = adapter.files, new, specification
        left.unload(adapter.base.every_copy())
        self._settle(adapter, reason)

    def take_down(self, component: Component) -> None:
        """Stops every copy at once; a copy that is being started is stopped by its starter."""
        for copy in component.every_copy():
            copy.request_stop()
        with component.lock:
            copies = [*component.copies, *component.pending, *component.retiring]
            component.copies, component.pending, component.retiring = [], [], []
        for copy in copies:
            copy.stop()

    def _grow(self, component: Component, wanted: int) -> str | None:
        """Starts the missing copies; returns the reason for those that could not start."""
        missing = wanted - len(component.copies)
        if missing <= 0:
            return None
        try:
            started = self._start(
                component, component.model, component.specification, [component.copy_size] * missing
            )
        except VariantStartError as error:
            return str(error)
        with component.lock:
            component.copies += started
        return TOO_SMALL if len(started) < missing else None

    def _start(
        self,
        component: Component,
        model: Mapping[str, Any],
        specification: Mapping[str, Any],
        sizes: Sequence[Size],
    ) -> list[RunningVariant]:
        """Starts as many copies as there is room for, all at the same time.

        Raises `VariantStartError` without any room, or if a copy does not start: none is left
        running.
        """
        with self._placing:
            group = component.group
            if group is None:
                raise VariantStartError(f"Endpoint {component.endpoint.name} was deleted.")
            places = self._place(component, group, specification, sizes)
            copies = [self._copy(component, group, model, specification, on) for on in places]
            # Seen by whatever stops the endpoint or the server meanwhile.
            with component.lock:
                component.starting += copies
        try:
            start_together(copies)
            if self._background.closing.is_set() or component.group is None:
                raise VariantStartError(f"Endpoint {component.endpoint.name} is gone.")
        except VariantStartError:
            for copy in copies:
                copy.stop()
            raise
        finally:
            with component.lock:
                component.starting = [each for each in component.starting if each not in copies]
        return copies

    def _copy(
        self,
        component: Component,
        group: InstanceGroup,
        model: Mapping[str, Any],
        specification: Mapping[str, Any],
        machine: Machine,
    ) -> RunningVariant:
        declared = {
            **specification.get("StartupParameters", {}),
            "VariantName": component.variant_name,
            "InstanceType": group.instance_type,
            "InitialInstanceCount": 1,
            "InitialVariantWeight": 1.0,
        }
        return RunningVariant(
            self._context,
            region=component.region,
            endpoint_name=component.endpoint.name,
            config_name=group.config_name,
            declared=declared,
            model=model,
            volume_key=group.volume_key,
            component_name=component.name,
            machine=machine,
            keeps_model=specification.get("DataCacheConfig", {}).get("EnableCaching", False),
        )

    def _place(
        self,
        component: Component,
        group: InstanceGroup,
        specification: Mapping[str, Any],
        sizes: Sequence[Size],
    ) -> list[Machine]:
        there = copies_on(self._components.all(), component.endpoint, component.variant_name)
        machines = group.machines(copy.machine for copy in there if copy.machine is not None)
        scheduling, places = specification.get("SchedulingConfig", {}), list[Machine]()
        for size in sizes:
            wanted = Copy(component.name, size)
            found = place(group.instance_size, machines, there, wanted, scheduling)
            if found is None and len(machines) < group.highest_count:
                further = [next_machine(machines)]
                found = place(group.instance_size, further, (), wanted, {})
                machines += further
            if found is None:
                break
            places.append(found)
            there.append(wanted._replace(machine=found))
        if not places:
            raise VariantStartError(TOO_SMALL)
        self._follow(component, group, len(machines))
        # The new instances are counted now.
        group.machines(machines)
        return places

    def _follow(self, component: Component, group: InstanceGroup, needed: int) -> None:
        missing = needed - group.instance_count
        if missing <= 0:
            return
        try:
            self._quotas.check(
                component.region,
                used=running_instances(self._endpoints.all(component.region)),
                wanted={group.instance_type: missing},
            )
        except ApiError as error:
            raise VariantStartError(error.message) from error
        group.instance_count, group.idle_since_seconds = needed, None

    def _undo(self, component: Component, reason: str) -> None:
        with component.lock:
            new, component.pending, component.pending_share = component.pending, [], 0.0
            component.retiring += new
            component.desired_count = len(component.copies)
        self._retire(component, new)
        self._settle(component, reason)

    def _stop(self, component: Component, copies: Sequence[RunningVariant]) -> None:
        with component.lock:
            component.copies = [copy for copy in component.copies if copy not in copies]
            component.retiring += copies
        self._retire(component, copies)

    def _retire(self, component: Component, copies: Sequence[RunningVariant]) -> None:
        for copy in copies:
            if not self._background.closing.is_set():
                copy.drain(_DRAIN_SECONDS)
            copy.request_stop()
        for copy in copies:
            copy.stop()
        with component.lock:
            component.retiring = [copy for copy in component.retiring if copy not in copies]

    def _settle(self, component: Component, reason: str | None = None) -> None:
        with component.lock:
            component.failure_reason = reason
            component.progress = None
            component.modified = now()
        logger.info(
            "inference component %s is %s with %s copies%s",
            component.name,
            component.status,
            len(component.copies),
            "" if reason is None else f": {reason}",
        )


def _load(adapter: Adapter, files: AdapterFiles) -> str | None:
    """Loads files into the copies that answer; returns the reason if a copy cannot."""
    with adapter.base.lock:
        copies = [*adapter.base.copies, *adapter.base.pending]
    try:
        for copy in copies:
            copy.load_adapter(files.identifier, files.url)
    except AdapterError as error:
        return str(error)
    return None
