"""The operations that change stacks without a change set."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import Answer, ApiError, Caller, Parameters
from slipway.embedded_aws.cloudformation.change_plan import plan_changes
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.request_reader import read_desired_state
from slipway.embedded_aws.cloudformation.stack import UPDATABLE, OperationContext, Stack, now
from slipway.embedded_aws.cloudformation.stack_contents import StackIdentity
from slipway.embedded_aws.cloudformation.stack_operations import StackOperations


@dataclass(frozen=True)
class Api:
    """A part of the API: each public method answers the operation of its name."""

    context: OperationContext
    operations: StackOperations

    def find_stack(
        self,
        caller: Caller,
        parameters: Mapping[str, Any],
        message: str = "Stack [{name}] does not exist",
    ) -> Stack:
        """Returns the stack that a request names, or raises ApiError."""
        name = parameters["StackName"]
        stack = self.context.store.find(caller.region, name)
        if stack is None:
            raise invalid(message.format(name=name))
        return stack


class StackApi(Api):
    """Creates, updates, rolls back and deletes stacks."""

    def create_stack(self, caller: Caller, parameters: Parameters) -> Answer:
        name, store = parameters["StackName"], self.context.store
        desired = read_desired_state(self.context, caller, parameters, None)
        identity = new_identity(caller, name)
        desired, _ = plan_changes(self.context, identity, desired, None)
        if parameters.get("DisableRollback") and parameters.get("OnFailure"):
            raise invalid("You can specify only one of DisableRollback and OnFailure")
        disabled = rollback_disabled(parameters)
        with store.lock:
            if store.find(caller.region, name) is not None:
                raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")
            stack = Stack(
                identity=identity,
                status="CREATE_IN_PROGRESS",
                created=now(),
                termination_protection=bool(parameters.get("EnableTerminationProtection")),
                role_arn=parameters.get("RoleARN"),
            )
            store.add(stack)
            on_failure = "DO_NOTHING" if disabled else parameters.get("OnFailure", "ROLLBACK")
            self.operations.create(stack, desired, parameters, on_failure)
        return {"StackId": identity.id}

    def update_stack(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters)
        self.operations.check_updatable(stack)
        desired = read_desired_state(self.context, caller, parameters, stack)
        desired, plan = plan_changes(self.context, stack.identity, desired, stack)
        if plan.is_empty and stack.status in UPDATABLE - {"CREATE_FAILED", "UPDATE_FAILED"}:
            raise invalid("No updates are to be performed.")
        stack.role_arn = parameters.get("RoleARN", stack.role_arn)
        disabled = rollback_disabled(parameters)
        self.operations.update(stack, desired, parameters, disable_rollback=disabled)
        return {"StackId": stack.identity.id}

    def delete_stack(self, caller: Caller, parameters: Parameters) -> None:
        """Handles DeleteStack; a stack that does not exist counts as deleted."""
        stack = self.context.store.find(caller.region, parameters["StackName"])
        if stack is None:
            return
        if stack.termination_protection:
            raise invalid(
                f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            )
        retain = parameters.get("RetainResources", [])
        if retain and stack.status != "DELETE_FAILED":
            raise invalid(
                "Invalid operation on stack. RetainResources can only be specified for a stack "
                "in DELETE_FAILED state."
            )
        stack.client_token = parameters.get("ClientRequestToken")
        force = parameters.get("DeletionMode") == "FORCE_DELETE_STACK"
        self.operations.delete(stack, retain=retain, force=force)

    def rollback_stack(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters)
        self.operations.roll_back(stack, parameters)
        return {"StackId": stack.identity.id}

    def continue_update_rollback(self, caller: Caller, parameters: Parameters) -> None:
        self.operations.continue_rollback(self.find_stack(caller, parameters), parameters)

    def cancel_update_stack(self, caller: Caller, parameters: Parameters) -> None:
        self.operations.cancel_update(self.find_stack(caller, parameters))

    def update_termination_protection(self, caller: Caller, parameters: Parameters) -> Answer:
        stack = self.find_stack(caller, parameters)
        stack.termination_protection = parameters["EnableTerminationProtection"]
        return {"StackId": stack.identity.id}


def new_identity(caller: Caller, name: str) -> StackIdentity:
    scope = f"{caller.region}:{caller.account_id}"
    stack_id = f"arn:aws:cloudformation:{scope}:stack/{name}/{uuid.uuid4()}"
    return StackIdentity(name, stack_id, caller.region, caller.account_id)


def rollback_disabled(parameters: Mapping[str, Any]) -> bool:
    """Returns whether a request asks to leave a failed deployment as it is."""
    config = parameters.get("DeploymentConfig", {})
    return bool(parameters.get("DisableRollback", config.get("DisableRollback", False)))
