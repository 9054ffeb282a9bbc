"""Deploys one resource at a time: calls its handler, records events, updates the stack's state."""

import dataclasses
import logging
import threading
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.cloudformation.lookups import ServerLookups
from slipway.embedded_aws.cloudformation.resources.base import (
    Attributes,
    ChangeRefusedError,
    InterruptedOperationError,
    Physical,
    Properties,
    ReplacementRequiredError,
    ResourceContext,
    ResourceFailedError,
    ResourceHandler,
)
from slipway.embedded_aws.cloudformation.stack import OperationContext, Stack, now
from slipway.embedded_aws.cloudformation.stack_contents import StackResource, deletion_order

logger = logging.getLogger(__name__)
T = TypeVar("T")

_REPLACING = (
    "Requested update requires the creation of a new physical resource; hence creating one."
)


class StoppedError(Exception):
    """The server is stopping: everything is left as it is."""


class Interrupt:
    """Ends the waits of one operation, because it is cancelled or because the server stops."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._stopping = False

    def cancel(self) -> None:
        """Makes the operation fail at its next step, so that it rolls back."""
        self.event.set()

    def stop(self) -> None:
        """Makes the operation end at its next step, whatever the state of the stack."""
        self._stopping = True
        self.event.set()

    def check(self) -> None:
        if self._stopping:
            raise StoppedError
        if self.event.is_set():
            raise InterruptedOperationError

    def settle(self) -> None:
        """Clears a cancellation, so that the rollback can wait."""
        if self._stopping:
            raise StoppedError
        self.event.clear()


class StepFailedError(Exception):
    """A resource failed, and may have been changed if it was touched; its event is recorded."""

    def __init__(self, reason: str, *, touched: bool = True) -> None:
        super().__init__(reason)
        self.touched = touched


class ResourceSteps:
    """Creates, updates and deletes the resources of one stack during one operation."""

    def __init__(self, context: OperationContext, stack: Stack, interrupt: Interrupt) -> None:
        self.context = context
        self.stack = stack
        self.interrupt = interrupt
        self.lookups = ServerLookups(context, stack.identity.region)

    def handler(self, type_name: str) -> ResourceHandler:
        return self.context.registry.get(type_name)

    def create(self, planned: StackResource, *, replacing: StackResource | None = None) -> None:
        """Creates a planned resource and adds it to the stack; the replaced one is deleted later.

        Raises:
            StepFailedError: the creation failed; a partly created resource stays in the stack as
                failed.
        """
        verb = "CREATE" if replacing is None else "UPDATE"
        old_id = replacing.physical_id or "" if replacing else ""
        reason = _REPLACING if replacing else None
        self._record(planned, f"{verb}_IN_PROGRESS", reason, physical_id=old_id)
        current = self._put(planned, status=f"{verb}_IN_PROGRESS")

        def initiated(physical_id: str, attributes: Attributes) -> None:
            nonlocal current
            current = self._put(current, physical_id=physical_id, attributes=attributes)
            self._record(current, f"{verb}_IN_PROGRESS", "Resource creation Initiated")

        try:
            physical = self._handle(
                planned,
                lambda handler, context: handler.create(context, planned.properties),
                initiated,
            )
        except StepFailedError as error:
            # Also while replacing, so that a retry creates the resource again instead of changing
            # it.
            self._finish(current, "CREATE_FAILED", str(error), event=f"{verb}_FAILED")
            raise
        if current.physical_id is None:
            initiated(physical.physical_id, physical.attributes)
        made = dataclasses.replace(
            current, physical_id=physical.physical_id, attributes=physical.attributes
        )
        self._finish(made, f"{verb}_COMPLETE")

    def adopt(self, planned: StackResource) -> None:
        """Adds an existing resource to the stack.

        Its update handler then applies every property of the template. A public log of a creation
        that imports has these events and reasons ("Apply stack-level tags to imported resource if
        applicable."). The handler changes more than tags.

        Raises:
            StepFailedError: the resource is gone, or a property cannot be applied.
        """
        current = self._put(planned, status="IMPORT_IN_PROGRESS")
        self._record(current, "IMPORT_IN_PROGRESS", "Resource import started.")

        def find(handler: ResourceHandler, context: ResourceContext) -> Physical:
            found = handler.existing(context, planned.properties)
            if found is None:
                raise ResourceFailedError(f"{planned.logical_id} does not exist any more")
            return found

        try:
            found = self._handle(planned, find)
        except StepFailedError as error:
            self._finish(current, "CREATE_FAILED", str(error), event="IMPORT_FAILED")
            raise
        current = dataclasses.replace(
            current, physical_id=found.physical_id, attributes=found.attributes, adopted=True
        )
        self._record(current, "IMPORT_COMPLETE", "Resource import completed.")
        reason = "Apply stack-level tags to imported resource if applicable."
        self._record(current, "UPDATE_IN_PROGRESS", reason)
        try:
            attributes = self._handle(
                current, lambda handler, context: _updated(handler, context, {}, planned.properties)
            )
        except StepFailedError as error:
            self._finish(current, "UPDATE_FAILED", str(error))
            raise
        self._finish(dataclasses.replace(current, attributes=attributes), "UPDATE_COMPLETE")

    def update(self, existing: StackResource, planned: StackResource) -> bool:
        """Changes a resource in place; returns False, and changes nothing, if it must be replaced.

        Raises:
            StepFailedError: the change failed and may be half done.
        """
        target = dataclasses.replace(
            planned, physical_id=existing.physical_id, attributes=existing.attributes
        )
        if existing.status != "UPDATE_FAILED" and existing.properties == target.properties:
            self.stack.resources[target.logical_id] = dataclasses.replace(
                target, status=existing.status, timestamp=existing.timestamp
            )
            return True
        self._record(target, "UPDATE_IN_PROGRESS")

        def attempt(handler: ResourceHandler, context: ResourceContext) -> Mapping[str, Any] | None:
            try:
                return _updated(handler, context, existing.properties, target.properties)
            except ReplacementRequiredError:
                return None

        running = self._put(target, status="UPDATE_IN_PROGRESS")
        try:
            attributes = self._handle(target, attempt)
        except StepFailedError as error:
            left = running if error.touched else dataclasses.replace(existing, attempted=False)
            self._finish(left, "UPDATE_FAILED", str(error))
            raise
        if attributes is None:
            self.stack.resources[target.logical_id] = existing
            return False
        self._finish(dataclasses.replace(running, attributes=attributes), "UPDATE_COMPLETE")
        return True

    def delete_all(
        self, resources: Iterable[StackResource], *, retained: Callable[[StackResource], bool]
    ) -> list[StackResource]:
        """Deletes resources, each before the resources it depends on.

        Returns those that could not be deleted, and those that were kept because of them.
        """
        failed: list[StackResource] = []
        kept: set[str] = set()
        for resource in deletion_order(resources):
            if resource.logical_id in kept:
                kept |= resource.dependencies
                failed.append(resource)
            elif resource.physical_id is None:
                self._record(resource, "DELETE_COMPLETE")
            elif retained(resource):
                self._record(resource, "DELETE_SKIPPED")
            elif not self._delete(resource):
                kept |= resource.dependencies
                failed.append(resource)
        return failed

    def fail(self, planned: StackResource, verb: str, reason: str) -> None:
        """Raises StepFailedError for a resource whose handler was never called."""
        existing = self.stack.resources.get(planned.logical_id)
        self._record(planned, f"{verb}_FAILED", reason, physical_id=planned.physical_id or "")
        subject = existing if existing is not None else planned
        self._put(subject, status=f"{verb}_FAILED", reason=reason, attempted=False)
        raise StepFailedError(reason)

    def restore(self, resource: StackResource) -> None:
        """Puts a resource's previous state back into the stack, without a call to its service."""
        self._record(resource, "UPDATE_COMPLETE")
        self.stack.resources[resource.logical_id] = resource

    def _delete(self, resource: StackResource) -> bool:
        self._record(resource, "DELETE_IN_PROGRESS")
        if self.stack.resources.get(resource.logical_id) is resource:
            self._put(resource, status="DELETE_IN_PROGRESS")
        try:
            self._handle(
                resource, lambda handler, context: handler.delete(context, resource.properties)
            )
        except StepFailedError as error:
            self._record(resource, "DELETE_FAILED", str(error))
            return False
        self._record(resource, "DELETE_COMPLETE")
        return True

    def _handle(
        self,
        resource: StackResource,
        attempt: Callable[[ResourceHandler, ResourceContext], T],
        # A resource that is not being created exists already, so such a report is ignored.
        initiated: Callable[[str, Attributes], object] = lambda *_: None,
    ) -> T:
        handler = self.handler(resource.type)
        context = ResourceContext(
            clients=self.context.clients,
            identity=self.stack.identity,
            logical_id=resource.logical_id,
            service=handler.service,
            physical_id=resource.physical_id or "",
            attributes=resource.attributes,
            interrupted=self.interrupt.event,
            on_initiated=initiated,
        )
        try:
            self.interrupt.check()
            return attempt(handler, context)
        except InterruptedOperationError:
            self.interrupt.settle()
            raise StepFailedError("Resource operation cancelled") from None
        except ChangeRefusedError as error:
            raise StepFailedError(str(error), touched=False) from None
        except (ResourceFailedError, ClientError, BotoCoreError) as error:
            raise StepFailedError(_reason(error)) from None
        except StoppedError:
            raise
        except Exception:
            # A bug of Slipway or moto. The stack must not hang, so the resource fails with the
            # reason.
            logger.error("%s failed:\n%s", resource.type, traceback.format_exc())
            raise StepFailedError(
                f"Internal error of the embedded AWS in {resource.type}; see its log"
            ) from None

    def _finish(
        self,
        resource: StackResource,
        status: str,
        reason: str | None = None,
        *,
        event: str | None = None,
    ) -> None:
        self._record(resource, event or status, reason)
        self._put(resource, status=status, reason=reason)

    def _put(self, resource: StackResource, **changes: Any) -> StackResource:
        """Changes a resource and puts it into the stack, as of now."""
        changed = dataclasses.replace(resource, timestamp=now(), **changes)
        self.stack.resources[resource.logical_id] = changed
        return changed

    def _record(
        self,
        resource: StackResource,
        status: str,
        reason: str | None = None,
        *,
        physical_id: str | None = None,
    ) -> None:
        self.stack.record(
            resource.logical_id,
            (resource.physical_id or "") if physical_id is None else physical_id,
            resource.type,
            status,
            reason,
            resource.properties,
        )


def _updated(
    handler: ResourceHandler, context: ResourceContext, old: Properties, new: Properties
) -> Attributes:
    attributes = handler.update(context, old, new)
    return context.attributes if attributes is None else attributes


def _reason(error: Exception) -> str:
    """Returns the reason of a failure in the words of CloudFormation's resource handlers."""
    token = uuid.uuid4()
    if isinstance(error, ClientError):
        details = error.response["Error"]
        metadata = error.response.get("ResponseMetadata", {})
        code = details.get("Code", "")
        kind = {
            "ResourceAlreadyExistsException": "AlreadyExists",
            "EntityAlreadyExists": "AlreadyExists",
            "AlreadyExistsException": "AlreadyExists",
            "BucketAlreadyExists": "AlreadyExists",
            "ResourceInUse": "ResourceConflict",
            "NoSuchEntity": "NotFound",
        }.get(code, "InvalidRequest" if "Valid" in code else "GeneralServiceException")
        return (
            f'Resource handler returned message: "{details.get("Message", "")} (Error Code: '
            f"{code}, Status Code: {metadata.get('HTTPStatusCode', 0)}, Request ID: "
            f'{metadata.get("RequestId", token)})" (RequestToken: {token}, '
            f"HandlerErrorCode: {kind})"
        )
    if isinstance(error, BotoCoreError):
        return (
            f'Resource handler returned message: "{error}" (RequestToken: {token}, '
            "HandlerErrorCode: InvalidRequest)"
        )
    return str(error)
