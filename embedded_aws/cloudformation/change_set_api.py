"""The operations on change sets, with which the CDK CLI deploys."""

import uuid
from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.api import Answer, ApiError, Caller, Parameters
from slipway.embedded_aws.cloudformation.change_plan import plan_changes
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.request_reader import read_desired_state
from slipway.embedded_aws.cloudformation.stack import ChangeSet, Stack, now
from slipway.embedded_aws.cloudformation.stack_api import Api, new_identity, rollback_disabled
from slipway.embedded_aws.cloudformation.views import (
    change_set_view,
    change_view,
    page,
)


class ChangeSetApi(Api):
    """Creates, shows, executes and deletes change sets."""

    def create_change_set(self, caller: Caller, parameters: Parameters) -> Answer:
        kind = parameters.get("ChangeSetType", "UPDATE")
        _check_supported(kind, parameters)
        stack = self._target(caller, kind, parameters)
        existing = stack if stack is not None and stack.desired is not None else None
        if existing is not None:
            self.operations.check_updatable(existing)
        desired = read_desired_state(self.context, caller, parameters, existing)
        identity = stack.identity if stack else new_identity(caller, parameters["StackName"])
        imports = parameters.get("ImportExistingResources") is True
        desired, plan = plan_changes(
            self.context, identity, desired, existing, import_existing=imports
        )
        name = parameters["ChangeSetName"]
        with self.context.store.lock:
            if stack is None:
                stack = Stack(identity=identity, status="REVIEW_IN_PROGRESS", created=now())
                stack.set_status("REVIEW_IN_PROGRESS", "User Initiated")
                self.context.store.add(stack)
            known = stack.change_sets.get(name)
            if known is not None and not known.is_executed:
                raise ApiError("AlreadyExistsException", f"ChangeSet {name} already exists")
            scope = f"{caller.region}:{caller.account_id}"
            arn = f"arn:aws:cloudformation:{scope}:changeSet/{name}/{uuid.uuid4()}"
            change_set = ChangeSet(arn, now(), desired, plan, parameters)
            stack.change_sets[name] = change_set
        return {"Id": change_set.arn, "StackId": stack.identity.id}

    def describe_change_set(self, caller: Caller, parameters: Parameters) -> Answer:
        stack, change_set = self._found(caller, parameters)
        changes = page("Changes", change_set.plan.changes, parameters, change_view)
        return {**change_set_view(stack, change_set), **changes}

    def execute_change_set(self, caller: Caller, parameters: Parameters) -> None:
        """Handles ExecuteChangeSet; the stack's other change sets are deleted."""
        with self.context.store.lock:
            stack, change_set = self._found(caller, parameters)
            if change_set.execution_status != "AVAILABLE":
                raise ApiError(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{change_set.arn}] cannot be executed in its current status of "
                    f"[{change_set.status}]",
                )
            submitted = change_set.submitted
            on_failure = submitted.get("OnStackFailure", "ROLLBACK")
            disabled = rollback_disabled({**submitted, **parameters}) or on_failure == "DO_NOTHING"
            if stack.status == "REVIEW_IN_PROGRESS":
                stack.role_arn = submitted.get("RoleARN")
                on_failure = "DO_NOTHING" if disabled else on_failure
                self.operations.create(stack, change_set.desired, parameters, on_failure)
            else:
                self.operations.update(
                    stack, change_set.desired, parameters, disable_rollback=disabled
                )
                stack.role_arn = submitted.get("RoleARN", stack.role_arn)
            change_set.is_executed = True
            stack.change_set_id = change_set.arn
            stack.change_sets = {change_set.name: change_set}

    def delete_change_set(self, caller: Caller, parameters: Parameters) -> None:
        """Handles DeleteChangeSet; a change set that does not exist counts as deleted."""
        stack = self._stack(caller, parameters)
        change_set = stack and stack.find_change_set(parameters["ChangeSetName"])
        if stack and change_set:
            del stack.change_sets[change_set.name]

    def list_change_sets(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters)
        change_sets = [change_set_view(stack, each) for each in stack.change_sets.values()]
        return page("Summaries", change_sets, parameters)

    def _target(self, caller: Caller, kind: str, parameters: Mapping[str, Any]) -> Stack | None:
        """Returns the stack of a new change set, or None if the stack must be created."""
        name = parameters["StackName"]
        stack = self.context.store.find(caller.region, name)
        if kind == "UPDATE" and stack is None:
            raise invalid(f"Stack [{name}] does not exist")
        if kind == "CREATE" and stack is not None and stack.status != "REVIEW_IN_PROGRESS":
            raise invalid(
                f"Stack [{stack.name}] already exists and cannot be created again with the "
                f"changeSet [{parameters['ChangeSetName']}]."
            )
        return stack

    def _stack(self, caller: Caller, parameters: Mapping[str, Any]) -> Stack | None:
        if "StackName" in parameters:
            return self.context.store.find(caller.region, parameters["StackName"])
        if not parameters["ChangeSetName"].startswith("arn:"):
            raise invalid("StackName must be specified if ChangeSetName is not an ARN.")
        return next(
            (
                stack
                for stack in self.context.store.all(caller.region)
                if stack.find_change_set(parameters["ChangeSetName"]) is not None
            ),
            None,
        )

    def _found(self, caller: Caller, parameters: Mapping[str, Any]) -> tuple[Stack, ChangeSet]:
        stack = self._stack(caller, parameters)
        name = parameters["ChangeSetName"]
        if stack is None and "StackName" in parameters:
            raise invalid(f"Stack [{parameters['StackName']}] does not exist")
        change_set = stack.find_change_set(name) if stack is not None else None
        if stack is None or change_set is None:
            raise ApiError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist")
        return stack, change_set


def _check_supported(kind: str, parameters: Mapping[str, Any]) -> None:
    if kind == "IMPORT" or parameters.get("ResourcesToImport"):
        raise invalid(
            "The embedded AWS imports resources by their names alone (ImportExistingResources)."
        )
    if parameters.get("DeploymentMode") == "REVERT_DRIFT":
        raise invalid("The embedded AWS does not detect drift.")
