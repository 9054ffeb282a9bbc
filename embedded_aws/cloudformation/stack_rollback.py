"""Takes a stack back to its previous state after a failed deployment, or deletes it.

A rollback undoes the finished steps: changed resources get their previous properties again, and new
resources are deleted.
"""

import dataclasses
from collections.abc import Callable, Collection

from slipway.embedded_aws.cloudformation.resource_steps import ResourceSteps, StepFailedError
from slipway.embedded_aws.cloudformation.stack import Stack, now
from slipway.embedded_aws.cloudformation.stack_contents import StackResource


def roll_back_creation(steps: ResourceSteps, failure: str) -> None:
    """Deletes the resources of a failed creation; ends in ROLLBACK_COMPLETE or ROLLBACK_FAILED."""
    stack = steps.stack
    stack.set_status("ROLLBACK_IN_PROGRESS", f"{failure} Rollback requested by user.".strip())
    failed = steps.delete_all(list(stack.resources.values()), retained=_outlives_rollback(stack))
    stack.resources = {resource.logical_id: resource for resource in failed}
    stack.outputs = {}
    stack.journal = None
    if failed:
        stack.set_status("ROLLBACK_FAILED", _not_deleted(failed))
    else:
        stack.set_status("ROLLBACK_COMPLETE")


def roll_back_update(steps: ResourceSteps, failure: str, *, skip: Collection[str] = ()) -> None:
    """Undoes a failed update; ends in UPDATE_ROLLBACK_COMPLETE or UPDATE_ROLLBACK_FAILED.

    The failure is the reason of the event. The logical ids to skip count as restored.
    """
    stack = steps.stack
    journal = stack.open_journal()
    stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS", failure or None)
    created = [
        resource
        for logical_id, resource in stack.resources.items()
        if (old := journal.resources.get(logical_id)) is None or not resource.is_same_object(old)
    ]
    failed: list[str] = []
    # Resources are restored in dependency order, as they were changed.
    order = journal.desired.template.order if journal.desired else tuple(journal.resources)
    for logical_id in (name for name in order if name in journal.resources):
        old = journal.resources[logical_id]
        new = stack.resources.get(logical_id)
        if new is old:
            continue
        if new is None or not new.is_same_object(old) or not new.attempted or logical_id in skip:
            steps.restore(old)
            continue
        try:
            if not steps.update(new, old):
                failed.append(logical_id)
        except StepFailedError:
            failed.append(logical_id)
    journal.superseded.extend(made for made in created if made not in journal.superseded)
    for resource in created:
        if resource.logical_id not in journal.resources:
            stack.resources.pop(resource.logical_id, None)
    if failed:
        reason = f"The following resource(s) failed to update: [{', '.join(failed)}]."
        stack.set_status("UPDATE_ROLLBACK_FAILED", reason)
        return
    stack.set_status("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
    steps.delete_all(journal.superseded, retained=_outlives_rollback(stack))
    stack.resources = {name: stack.resources[name] for name in journal.resources}
    stack.outputs = journal.outputs
    stack.desired = journal.desired
    stack.journal = None
    stack.set_status("UPDATE_ROLLBACK_COMPLETE")


def delete_stack(steps: ResourceSteps, *, retain: Collection[str], force: bool = False) -> None:
    """Deletes a stack's resources, but those with a logical id to retain, then the stack.

    With `force`, resources that cannot be deleted are kept instead of failing the deletion.
    """
    stack = steps.stack
    resources = list(stack.resources.values())
    if stack.journal is not None:
        live = {(item.type, item.physical_id) for item in resources}
        resources += [
            old
            for old in [*stack.journal.resources.values(), *stack.journal.superseded]
            if (old.type, old.physical_id) not in live
        ]
    for name in (output.export_name for output in stack.outputs.values()):
        if name and (importers := steps.context.store.importers(stack.identity.region, name)):
            stack.set_status(
                "DELETE_FAILED",
                f"Delete canceled. Cannot delete export {name} as it is in use by "
                f"{', '.join(importers)}.",
            )
            return
    failed = steps.delete_all(
        resources,
        retained=lambda resource: resource.logical_id in retain or resource.outlives_stack,
    )
    stack.resources = {resource.logical_id: resource for resource in failed}
    if failed and not force:
        for name, resource in stack.resources.items():
            stack.resources[name] = dataclasses.replace(resource, status="DELETE_FAILED")
        stack.journal = None
        stack.set_status("DELETE_FAILED", _not_deleted(failed))
        return
    stack.resources, stack.outputs, stack.journal = {}, {}, None
    stack.deleted = now()
    stack.set_status("DELETE_COMPLETE")


def _outlives_rollback(stack: Stack) -> Callable[[StackResource], bool]:
    return lambda resource: (
        resource.adopted
        or (resource.deletion_policy == "Retain" and not stack.retain_except_on_create)
    )


def _not_deleted(failed: list[StackResource]) -> str:
    names = ", ".join(resource.logical_id for resource in failed)
    return f"The following resource(s) failed to delete: [{names}]."
