"""The operations that change stacks without a change set."""

from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.api import ApiError, Caller
from slipway.embedded_aws.cloudformation.request_reader import RequestReader
from slipway.embedded_aws.cloudformation.stack import UPDATABLE, Stack, StackStore, now
from slipway.embedded_aws.cloudformation.stack_operations import StackOperations


def find_stack(
    store: StackStore,
    caller: Caller,
    parameters: Mapping[str, Any],
    message: str = "Stack [{name}] does not exist",
) -> Stack:
    """Returns the stack that a request names.

    Raises:
        ApiError: there is no such stack.
    """
    stack = store.find(caller.region, parameters["StackName"])
    if stack is None:
        raise ApiError("ValidationError", message.format(name=parameters["StackName"]))
    return stack


class StackApi:
    """Creates, updates, rolls back and deletes stacks.

    Each public method is the operation of its name, as in the other two classes.
    """

    def __init__(
        self, store: StackStore, stack_operations: StackOperations, reader: RequestReader
    ) -> None:
        self._store = store
        self._stack_operations = stack_operations
        self._reader = reader

    def create_stack(self, caller: Caller, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """Handles CreateStack."""
        name = parameters["StackName"]
        desired = self._reader.read_desired_state(caller, parameters, None)
        identity = self._reader.new_identity(caller, name)
        desired, _ = self._reader.plan_changes(identity, desired, None)
        if parameters.get("DisableRollback") and parameters.get("OnFailure"):
            raise ApiError(
                "ValidationError", "You can specify only one of DisableRollback and OnFailure"
            )
        disabled = rollback_disabled(parameters)
        with self._store.lock:
            if self._store.find(caller.region, name) is not None:
                raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")
            stack = Stack(
                identity=identity,
                status="CREATE_IN_PROGRESS",
                created=now(),
                termination_protection=bool(parameters.get("EnableTerminationProtection")),
                role_arn=parameters.get("RoleARN"),
                client_token=parameters.get("ClientRequestToken"),
            )
            self._store.add(stack)
            self._stack_operations.create(
                stack,
                desired,
                on_failure=("DO_NOTHING" if disabled else parameters.get("OnFailure", "ROLLBACK")),
                retain_except_on_create=bool(parameters.get("RetainExceptOnCreate")),
            )
        return {"StackId": identity.id}

    def update_stack(self, caller: Caller, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """Handles UpdateStack."""
        stack = find_stack(self._store, caller, parameters)
        self._stack_operations.check_updatable(stack)
        desired = self._reader.read_desired_state(caller, parameters, stack)
        desired, plan = self._reader.plan_changes(stack.identity, desired, stack)
        if plan.is_empty and stack.status in UPDATABLE - {"CREATE_FAILED", "UPDATE_FAILED"}:
            raise ApiError("ValidationError", "No updates are to be performed.")
        stack.client_token = parameters.get("ClientRequestToken")
        stack.role_arn = parameters.get("RoleARN", stack.role_arn)
        self._stack_operations.update(
            stack,
            desired,
            disable_rollback=rollback_disabled(parameters),
            retain_except_on_create=bool(parameters.get("RetainExceptOnCreate")),
        )
        return {"StackId": stack.identity.id}

    def delete_stack(self, caller: Caller, parameters: dict[str, Any]) -> None:
        """Handles DeleteStack; a stack that does not exist counts as deleted."""
        stack = self._store.find(caller.region, parameters["StackName"])
        if stack is None:
            return
        if stack.termination_protection:
            raise ApiError(
                "ValidationError",
                f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled",
            )
        retain = parameters.get("RetainResources", [])
        if retain and stack.status != "DELETE_FAILED":
            raise ApiError(
                "ValidationError",
                "Invalid operation on stack. RetainResources can only be specified for a stack "
                "in DELETE_FAILED state.",
            )
        stack.client_token = parameters.get("ClientRequestToken")
        self._stack_operations.delete(
            stack,
            retain=retain,
            force=parameters.get("DeletionMode") == "FORCE_DELETE_STACK",
        )

    def rollback_stack(self, caller: Caller, parameters: dict[str, Any]) -> Mapping[str, Any]:
        """Handles RollbackStack."""
        stack = find_stack(self._store, caller, parameters)
        stack.client_token = parameters.get("ClientRequestToken")
        self._stack_operations.roll_back(
            stack, retain_except_on_create=bool(parameters.get("RetainExceptOnCreate"))
        )
        return {"StackId": stack.identity.id}

    def continue_update_rollback(self, caller: Caller, parameters: dict[str, Any]) -> None:
        """Handles ContinueUpdateRollback."""
        stack = find_stack(self._store, caller, parameters)
        stack.client_token = parameters.get("ClientRequestToken")
        self._stack_operations.continue_rollback(stack, skip=parameters.get("ResourcesToSkip", []))

    def cancel_update_stack(self, caller: Caller, parameters: dict[str, Any]) -> None:
        """Handles CancelUpdateStack."""
        self._stack_operations.cancel_update(find_stack(self._store, caller, parameters))

    def update_termination_protection(
        self, caller: Caller, parameters: dict[str, Any]
    ) -> Mapping[str, Any]:
        """Handles UpdateTerminationProtection."""
        stack = find_stack(self._store, caller, parameters)
        stack.termination_protection = parameters["EnableTerminationProtection"]
        return {"StackId": stack.identity.id}


def rollback_disabled(parameters: Mapping[str, Any]) -> bool:
    """Returns whether a request asks to leave a failed deployment as it is."""
    config = parameters.get("DeploymentConfig", {})
    return bool(parameters.get("DisableRollback", config.get("DisableRollback", False)))
