"""Brings a stack to its desired state, resource by resource, in CloudFormation's order.

Resources come in dependency order. A replacement is made before the replaced resource is deleted.
Deletions come only once everything else has succeeded. After a failure, `stack_rollback` undoes the
finished steps.
"""

import dataclasses

from slipway.embedded_aws.cloudformation.desired_state import (
    DesiredState,
    StackScope,
    with_stack_tags,
)
from slipway.embedded_aws.cloudformation.intrinsics import TemplateError
from slipway.embedded_aws.cloudformation.resource_steps import ResourceSteps, StepFailedError
from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler, changed
from slipway.embedded_aws.cloudformation.stack import now
from slipway.embedded_aws.cloudformation.stack_contents import StackResource
from slipway.embedded_aws.cloudformation.stack_rollback import (
    delete_stack,
    roll_back_creation,
    roll_back_update,
)


class StackDeployment:
    """One create or update of a stack."""

    def __init__(self, steps: ResourceSteps, desired: DesiredState) -> None:
        self._steps = steps
        self._stack = steps.stack
        self._desired = desired
        self._evaluator = desired.evaluator(
            self._stack.identity, StackScope(self._stack.resources), steps.lookups
        )

    def create(self, on_failure: str) -> None:
        failure = self._apply()
        if failure is None:
            self._stack.journal = None
            self._stack.set_status("CREATE_COMPLETE")
        elif on_failure == "DO_NOTHING":
            self._stack.set_status("CREATE_FAILED", failure)
        else:
            roll_back_creation(self._steps, failure)
            if on_failure == "DELETE" and self._stack.status == "ROLLBACK_COMPLETE":
                delete_stack(self._steps, retain=())

    def update(self) -> None:
        failure = self._apply()
        if failure is None:
            self._clean_up()
        elif self._stack.disable_rollback:
            self._stack.set_status("UPDATE_FAILED", failure)
        else:
            roll_back_update(self._steps, failure)

    def _apply(self) -> str | None:
        """Creates and changes resources; returns the reason of a failure, or None."""
        logical_id, verb = "", "create"
        try:
            active = self._desired.active(self._evaluator)
            for logical_id in active:
                existing = self._stack.resources.get(logical_id)
                settled = existing is not None and existing.status != "CREATE_FAILED"
                verb = "update" if settled else "create"
                self._bring(logical_id, frozenset(active))
            self._set_outputs()
        except StepFailedError:
            return f"The following resource(s) failed to {verb}: [{logical_id}]."
        except TemplateError as error:
            return str(error)
        return None

    def _bring(self, logical_id: str, active: frozenset[str]) -> None:
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
            evaluated = self._evaluator.evaluate(dict(definition.properties))
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
        if existing is not None:
            self._change(existing, planned, handler)
        elif logical_id in self._desired.adopted:
            steps.adopt(planned)
        else:
            steps.create(planned)

    def _change(
        self, existing: StackResource, planned: StackResource, handler: ResourceHandler
    ) -> None:
        """Changes a resource in place, or replaces it if that is not possible."""
        steps, properties = self._steps, planned.properties
        must_replace = changed(existing.properties, properties, *handler.create_only)
        if not must_replace and steps.update(existing, planned):
            return
        name = handler.name_property or ""
        if name in properties and properties[name] == existing.properties.get(name):
            steps.fail(
                planned,
                "UPDATE",
                "CloudFormation cannot update a stack when a custom-named resource requires "
                f"replacing. Rename {existing.physical_id} and update the stack again.",
            )
        journal = self._stack.journal
        if journal is not None:
            kept = journal.resources.get(planned.logical_id)
            if kept is None or not kept.is_same_object(existing):
                journal.superseded.append(existing)
        steps.create(planned, replacing=existing)

    def _set_outputs(self) -> None:
        stack, store = self._stack, self._steps.context.store
        outputs = self._desired.outputs(self._evaluator)
        others = {
            output.export_name: other.name
            for other, output in store.exports(stack.identity.region)
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
            name = output.export_name
            if name and kept.get(name) != output.value:
                importers = store.importers(stack.identity.region, name)
                if importers:
                    raise TemplateError(
                        f"Export {name} cannot be updated as it is in use by {', '.join(importers)}"
                    )
        stack.outputs = outputs

    def _clean_up(self) -> None:
        """Deletes resources that the new state does not have; a failed deletion is left behind."""
        stack = self._stack
        journal = stack.open_journal()
        stack.set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        wanted = set(self._desired.active(self._evaluator))
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
                else resource in removed and resource.outlives_stack
            ),
        )
        for resource in removed:
            stack.resources.pop(resource.logical_id, None)
        stack.journal = None
        stack.set_status("UPDATE_COMPLETE")
