"""Runs stack operations in the background, one thread each, and ends them promptly.

Every operation checks and changes the stack's status in the caller's request, under the store's
lock, so that two requests cannot both start. The rest happens in the thread.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.resource_steps import (
    Interrupt,
    ResourceSteps,
    StoppedError,
)
from slipway.embedded_aws.cloudformation.stack import (
    UPDATABLE,
    Journal,
    OperationContext,
    Stack,
    now,
)
from slipway.embedded_aws.cloudformation.stack_deployment import StackDeployment
from slipway.embedded_aws.cloudformation.stack_rollback import (
    delete_stack,
    roll_back_creation,
    roll_back_update,
)

logger = logging.getLogger(__name__)

# Long enough for a call to another service to return, short enough not to hold up a shutdown.
_STOP_SECONDS = 10


class StackOperations:
    """Starts, cancels and ends the operations on stacks.

    `parameters` are those of the request that begins an operation. A method raises ApiError if the
    stack's status does not allow the operation.
    """

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._lock = context.store.lock
        self._running: dict[str, tuple[threading.Thread, Interrupt]] = {}
        self._closed = False

    def create(
        self, stack: Stack, desired: DesiredState, parameters: Mapping[str, Any], on_failure: str
    ) -> None:
        """Starts creating a new stack's resources.

        After a failure comes `ROLLBACK`, `DELETE` or `DO_NOTHING`.
        """
        stack.take_options(parameters)
        stack.desired = desired
        stack.disable_rollback = on_failure == "DO_NOTHING"
        stack.journal = Journal(resources={}, desired=None, outputs={})
        stack.set_status("CREATE_IN_PROGRESS", "User Initiated")
        self._start(stack, lambda steps: StackDeployment(steps, desired).create(on_failure))

    def update(
        self,
        stack: Stack,
        desired: DesiredState,
        parameters: Mapping[str, Any],
        *,
        disable_rollback: bool,
    ) -> None:
        """Starts changing a stack, whose status changes before this returns.

        With `disable_rollback`, a failure ends in UPDATE_FAILED instead of a rollback.
        """
        with self._lock:
            self.check_updatable(stack)
            # After a failure without rollback, a rollback still returns to the last settled state.
            if stack.journal is None:
                stack.journal = Journal(
                    resources=dict(stack.resources), desired=stack.desired, outputs=stack.outputs
                )
            stack.take_options(parameters)
            stack.desired = desired
            stack.disable_rollback = disable_rollback
            stack.updated = now()
            stack.set_status("UPDATE_IN_PROGRESS", "User Initiated")
            self._start(stack, lambda steps: StackDeployment(steps, desired).update())

    def check_updatable(self, stack: Stack) -> None:
        if stack.status not in UPDATABLE:
            raise _refused(stack, "updated")

    def roll_back(self, stack: Stack, parameters: Mapping[str, Any]) -> None:
        """Starts undoing a deployment that failed without rollback."""
        with self._lock:
            if stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
                raise _refused(stack, "rolled back")
            starting, action = {
                "CREATE_FAILED": ("ROLLBACK_IN_PROGRESS", roll_back_creation),
                "UPDATE_FAILED": ("UPDATE_ROLLBACK_IN_PROGRESS", roll_back_update),
            }[stack.status]
            stack.take_options(parameters)
            # The thread records the event, but the status must change before this returns.
            stack.status = starting
            self._start(stack, lambda steps: action(steps, ""))

    def continue_rollback(self, stack: Stack, parameters: Mapping[str, Any]) -> None:
        """Starts a failed rollback of an update again."""
        with self._lock:
            if stack.status != "UPDATE_ROLLBACK_FAILED":
                raise _refused(stack, "updated")
            stack.take_options(parameters)
            stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
            skip = parameters.get("ResourcesToSkip", [])
            self._start(stack, lambda steps: roll_back_update(steps, "User Initiated", skip=skip))

    def cancel_update(self, stack: Stack) -> None:
        """Cancels a running update, which then rolls back."""
        with self._lock:
            running = self._running.get(stack.identity.id)
            if stack.status != "UPDATE_IN_PROGRESS" or running is None:
                raise invalid("CancelUpdateStack cannot be called from current stack status")
            running[1].cancel()

    def delete(self, stack: Stack, *, retain: Collection[str], force: bool) -> None:
        """Starts deleting a stack, unless it is being deleted already; see `delete_stack`.

        A creation in progress is stopped first.
        """
        with self._lock:
            if stack.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
                return
            unfinished = self._running.get(stack.identity.id)
            if stack.status == "CREATE_IN_PROGRESS" and unfinished is not None:
                unfinished[1].stop()
            elif stack.status.endswith("_IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS":
                raise _refused(stack, "deleted")

            def act(steps: ResourceSteps) -> None:
                if unfinished is not None:
                    unfinished[0].join()
                delete_stack(steps, retain=retain, force=force)

            stack.set_status("DELETE_IN_PROGRESS", "User Initiated")
            self._start(stack, act)

    def close(self) -> None:
        """Stops every operation at its next step and waits until all have ended."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for _, interrupt in running:
            interrupt.stop()
        for thread, _ in running:
            thread.join(_STOP_SECONDS)

    def _start(self, stack: Stack, action: Callable[[ResourceSteps], None]) -> None:
        with self._lock:
            if self._closed:
                raise invalid("The embedded AWS is stopping.")
            interrupt = Interrupt()
            steps = ResourceSteps(self._context, stack, interrupt)
            thread = threading.Thread(
                target=self._run,
                args=(stack, steps, action),
                name=f"stack-{stack.name}",
                daemon=True,
            )
            self._running[stack.identity.id] = (thread, interrupt)
            thread.start()

    def _run(
        self, stack: Stack, steps: ResourceSteps, action: Callable[[ResourceSteps], None]
    ) -> None:
        try:
            action(steps)
        except StoppedError:
            logger.info("stack %s was left in %s", stack.name, stack.status)
        except Exception:
            # A bug of Slipway: reported in the stack, because it would otherwise stay in progress
            # for ever.
            logger.exception("operation on stack %s failed", stack.name)
            failed = stack.status.removesuffix("_IN_PROGRESS").removesuffix("_COMPLETE_CLEANUP")
            stack.set_status(f"{failed}_FAILED", "Internal error of the embedded AWS; see its log")
        finally:
            with self._lock:
                # A client that saw the final status may already have started the next operation.
                running = self._running.get(stack.identity.id)
                if running is not None and running[0] is threading.current_thread():
                    del self._running[stack.identity.id]


def _refused(stack: Stack, change: str) -> ApiError:
    return invalid(f"Stack:{stack.identity.id} is in {stack.status} state and can not be {change}.")
