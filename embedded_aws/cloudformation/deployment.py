"""Brings a stack to its desired state, or back to its previous state.

An update follows CloudFormation's order: resources in dependency order, replacements made before
the replaced resource is deleted, deletions only once everything else has succeeded. A failure
undoes the finished steps: changed resources get their previous properties again, and new ones are
deleted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from embedded_aws.cloudformation.desired import Desired, StackScope, with_stack_tags
from embedded_aws.cloudformation.intrinsics import Evaluator, TemplateError
from embedded_aws.cloudformation.operation import ResourceSteps, StepFailedError
from embedded_aws.cloudformation.snapshot import Output, StackResource
from embedded_aws.cloudformation.stack import Journal, Stack, now


class Deployment:
    """One create or update of a stack.

    Args:
        steps: acts on single resources.
        desired: the state to reach.
        retain_except_on_create: whether a rollback deletes new resources even if their policy
            retains them.
    """

    def __init__(
        self, steps: ResourceSteps, desired: Desired, *, retain_except_on_create: bool = False
    ) -> None:
        self._steps = steps
        self._stack = steps.stack
        self._desired = desired
        self._retain_except_on_create = retain_except_on_create

    def create(self, on_failure: str) -> None:
        """Creates every resource of a new stack.

        Args:
            on_failure: `ROLLBACK`, `DELETE` or `DO_NOTHING`.
        """
        failure = self._apply()
        if failure is None:
            self._stack.journal = None
            self._stack.set_status("CREATE_COMPLETE")
        elif on_failure == "DO_NOTHING":
            self._stack.set_status("CREATE_FAILED", failure)
        else:
            roll_back_creation(
                self._steps, failure, retain_except_on_create=self._retain_except_on_create
            )
            if on_failure == "DELETE" and self._stack.status == "ROLLBACK_COMPLETE":
                delete_stack(self._steps, retain=())

    def update(self, *, disable_rollback: bool) -> None:
        """Changes an existing stack."""
        failure = self._apply()
        if failure is None:
            self._clean_up()
        elif disable_rollback:
            self._stack.set_status("UPDATE_FAILED", failure)
        else:
            roll_back_update(
                self._steps, failure, retain_except_on_create=self._retain_except_on_create
            )

    def _apply(self) -> str | None:
        """Creates and changes resources; returns the reason of a failure, or None."""
        stack, steps = self._stack, self._steps
        evaluator = self._desired.evaluator(
            stack.identity, StackScope(stack.resources), steps.lookups
        )
        logical_id, verb = "", "create"
        try:
            active = self._desired.active(evaluator)
            for logical_id in active:
                verb = "update" if self._is_settled(logical_id) else "create"
                self._bring(logical_id, frozenset(active), evaluator)
            self._set_outputs(evaluator)
        except StepFailedError:
            return f"The following resource(s) failed to {verb}: [{logical_id}]."
        except TemplateError as error:
            return str(error)
        return None

    def _is_settled(self, logical_id: str) -> bool:
        existing = self._stack.resources.get(logical_id)
        return existing is not None and existing.status != "CREATE_FAILED"

    def _bring(self, logical_id: str, active: frozenset[str], evaluator: Evaluator) -> None:
        """Creates or changes one resource if necessary."""
        definition = self._desired.template.resources[logical_id]
        steps, existing = self._steps, self._stack.resources.get(logical_id)
        planned = StackResource(
            logical_id=logical_id,
            type=definition.type,
            physical_id=None,
            properties={},
            attributes={},
            dependencies=self._desired.template.dependencies[logical_id] & active,
            deletion_policy=definition.deletion_policy,
            update_replace_policy=definition.update_replace_policy,
            metadata=definition.metadata,
            status="CREATE_IN_PROGRESS",
            reason=None,
            timestamp=now(),
        )
        handler = steps.handler(definition.type)
        try:
            evaluated = evaluator.evaluate(dict(definition.properties))
        except TemplateError as error:
            steps.fail(planned, "UPDATE" if existing else "CREATE", str(error))
        properties = with_stack_tags(handler, evaluated, self._desired.tags)
        planned = dataclasses.replace(planned, properties=properties)
        if existing is not None and existing.status == "CREATE_FAILED":
            # Left by a deployment without rollback. A partly created resource would be in the way.
            if existing.physical_id is not None and steps.delete_all(
                [existing], retained=lambda _: False
            ):
                steps.fail(planned, "CREATE", "The failed resource cannot be deleted")
            del self._stack.resources[logical_id]
            existing = None
        if existing is None:
            if logical_id in self._desired.adopted:
                steps.adopt(planned)
            else:
                steps.create(planned)
            return
        must_replace = any(
            existing.properties.get(name) != properties.get(name) for name in handler.create_only
        )
        if not must_replace and steps.update(existing, planned):
            return
        name_property = handler.name_property
        if (
            name_property is not None
            and name_property in properties
            and properties[name_property] == existing.properties.get(name_property)
        ):
            steps.fail(
                planned,
                "UPDATE",
                "CloudFormation cannot update a stack when a custom-named resource requires "
                f"replacing. Rename {existing.physical_id} and update the stack again.",
            )
        journal = self._stack.journal
        if journal is not None:
            kept = journal.resources.get(logical_id)
            if kept is None or not kept.is_same_object(existing):
                journal.superseded.append(existing)
        steps.create(planned, replacing=existing)

    def _set_outputs(self, evaluator: Evaluator) -> None:
        stack = self._stack
        outputs = self._desired.outputs(evaluator)
        others = {
            output.export_name: other.name
            for other, output in self._steps.environment.store.exports(stack.identity.region)
            if other is not stack
        }
        for output in outputs.values():
            if output.export_name in others:
                raise TemplateError(
                    f"Export with name {output.export_name} is already exported by stack "
                    f"{others[output.export_name]}."
                )
        kept = {output.export_name: output.value for output in outputs.values()}
        for output in stack.outputs.values():
            if output.export_name and kept.get(output.export_name) != output.value:
                self._check_unused(output)
        stack.outputs = outputs

    def _check_unused(self, output: Output) -> None:
        region = self._stack.identity.region
        importers = self._steps.environment.store.importers(region, str(output.export_name))
        if importers:
            raise TemplateError(
                f"Export {output.export_name} cannot be updated as it is in use by "
                f"{', '.join(importers)}"
            )

    def _clean_up(self) -> None:
        """Deletes resources that the new state does not have; a failed deletion is left behind."""
        stack = self._stack
        journal = _journal(stack)
        stack.set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        evaluator = self._desired.evaluator(
            stack.identity, StackScope(stack.resources), self._steps.lookups
        )
        wanted = set(self._desired.active(evaluator))
        removed = [item for name, item in stack.resources.items() if name not in wanted]
        replaced = [
            old
            for name, old in journal.resources.items()
            if name in stack.resources and not stack.resources[name].is_same_object(old)
        ]
        self._steps.delete_all(
            [*removed, *journal.superseded, *replaced],
            retained=lambda resource: (
                resource.update_replace_policy == "Retain"
                if resource in replaced
                else resource in removed and _retains(resource)
            ),
        )
        for resource in removed:
            stack.resources.pop(resource.logical_id, None)
        stack.journal = None
        stack.set_status("UPDATE_COMPLETE")


def roll_back_creation(
    steps: ResourceSteps, failure: str, *, retain_except_on_create: bool = False
) -> None:
    """Deletes the resources of a failed creation; ends in ROLLBACK_COMPLETE or ROLLBACK_FAILED.

    Args:
        steps: acts on single resources.
        failure: reason of the rollback, for the event.
        retain_except_on_create: whether new resources are deleted even if their policy retains
            them.
    """
    stack = steps.stack
    stack.set_status("ROLLBACK_IN_PROGRESS", f"{failure} Rollback requested by user.".strip())
    failed = steps.delete_all(
        list(stack.resources.values()),
        retained=lambda resource: (
            resource.imported
            or (resource.deletion_policy == "Retain" and not retain_except_on_create)
        ),
    )
    stack.resources = {resource.logical_id: resource for resource in failed}
    stack.outputs = {}
    stack.journal = None
    if failed:
        stack.set_status("ROLLBACK_FAILED", _not_deleted(failed))
    else:
        stack.set_status("ROLLBACK_COMPLETE")


def roll_back_update(
    steps: ResourceSteps,
    failure: str,
    *,
    retain_except_on_create: bool = False,
    skip: Collection[str] = (),
) -> None:
    """Undoes a failed update; ends in UPDATE_ROLLBACK_COMPLETE or UPDATE_ROLLBACK_FAILED.

    Args:
        steps: acts on single resources.
        failure: reason of the rollback, for the event.
        retain_except_on_create: whether new resources are deleted even if their policy retains
            them.
        skip: logical ids that count as restored (ContinueUpdateRollback).
    """
    stack = steps.stack
    journal = _journal(stack)
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
    steps.delete_all(
        journal.superseded,
        retained=lambda resource: (
            resource.imported
            or (resource.deletion_policy == "Retain" and not retain_except_on_create)
        ),
    )
    stack.resources = {name: stack.resources[name] for name in journal.resources}
    stack.outputs = journal.outputs
    stack.desired = journal.desired
    stack.journal = None
    stack.set_status("UPDATE_ROLLBACK_COMPLETE")


def delete_stack(steps: ResourceSteps, *, retain: Collection[str], force: bool = False) -> None:
    """Deletes a stack's resources, then the stack.

    Args:
        steps: acts on single resources.
        retain: logical ids of resources to keep.
        force: whether resources that cannot be deleted are kept instead of failing the deletion.
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
    in_use = {
        output.export_name: importers
        for output in stack.outputs.values()
        if output.export_name is not None
        and (
            importers := steps.environment.store.importers(
                stack.identity.region, output.export_name
            )
        )
    }
    if in_use:
        name, importers = next(iter(in_use.items()))
        stack.set_status(
            "DELETE_FAILED",
            f"Delete canceled. Cannot delete export {name} as it is in use by "
            f"{', '.join(importers)}.",
        )
        return
    failed = steps.delete_all(
        resources,
        retained=lambda resource: resource.logical_id in retain or _retains(resource),
    )
    stack.resources = {resource.logical_id: resource for resource in failed}
    if failed and not force:
        for resource in failed:
            stack.resources[resource.logical_id] = dataclasses.replace(
                resource, status="DELETE_FAILED"
            )
        stack.journal = None
        stack.set_status("DELETE_FAILED", _not_deleted(failed))
        return
    stack.resources, stack.outputs, stack.journal = {}, {}, None
    stack.deleted = now()
    stack.set_status("DELETE_COMPLETE")


def _retains(resource: StackResource) -> bool:
    return resource.deletion_policy in ("Retain", "RetainExceptOnCreate")


def _not_deleted(failed: list[StackResource]) -> str:
    names = ", ".join(resource.logical_id for resource in failed)
    return f"The following resource(s) failed to delete: [{names}]."


def _journal(stack: Stack) -> Journal:
    if stack.journal is None:
        raise RuntimeError(f"stack {stack.name} has no journal to go by")
    return stack.journal
