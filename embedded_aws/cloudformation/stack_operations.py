"""Runs stack operations in the background, one thread each, and ends them promptly.

Every operation checks and changes the stack's status in the caller's request, under the store's
lock, so that two requests cannot both start. The rest happens in the thread.
"""

import logging
import threading
from collections.abc import Callable, Collection

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.interrupt import Interrupt, StoppedError
from slipway.embedded_aws.cloudformation.resource_steps import OperationContext, ResourceSteps
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack import UPDATABLE, Journal, Stack, StackStore, now
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
    """Starts, cancels and ends the operations on stacks."""

    def __init__(
        self, clients: LoopbackClients, registry: ResourceRegistry, store: StackStore
    ) -> None:
        self._context = OperationContext(clients, registry, store)
        self._store = store
        self._running: dict[str, tuple[threading.Thread, Interrupt]] = {}
        self._closed = False

    def create(
        self, stack: Stack, desired: DesiredState, *, on_failure: str, retain_except_on_create: bool
    ) -> None:
        """Starts creating a new stack's resources.

        Args:
            stack: a stack without resources.
            desired: the state to reach.
            on_failure: `ROLLBACK`, `DELETE` or `DO_NOTHING`.
            retain_except_on_create: whether a rollback deletes new resources even if their policy
                retains them.
        """
        stack.desired = desired
        stack.disable_rollback = on_failure == "DO_NOTHING"
        stack.journal = Journal(resources={}, desired=None, outputs={})
        stack.set_status("CREATE_IN_PROGRESS", "User Initiated")
        self._start(
            stack,
            lambda steps: StackDeployment(
                steps, desired, retain_except_on_create=retain_except_on_create
            ).create(on_failure),
        )

    def update(
        self,
        stack: Stack,
        desired: DesiredState,
        *,
        disable_rollback: bool,
        retain_except_on_create: bool,
    ) -> None:
        """Starts changing a stack.

        Args:
            stack: changed to UPDATE_IN_PROGRESS before this returns.
            desired: the state to reach.
            disable_rollback: whether a failure ends in UPDATE_FAILED instead of a rollback.
            retain_except_on_create: whether a rollback deletes new resources even if their policy
                retains them.

        Raises:
            ApiError: the stack's status does not allow an update.
        """
        with self._store.lock:
            self.check_updatable(stack)
            # After a failure without rollback, a rollback still returns to the last settled state.
            if stack.journal is None:
                stack.journal = Journal(
                    resources=dict(stack.resources), desired=stack.desired, outputs=stack.outputs
                )
            stack.desired = desired
            stack.disable_rollback = disable_rollback
            stack.updated = now()
            stack.set_status("UPDATE_IN_PROGRESS", "User Initiated")
            self._start(
                stack,
                lambda steps: StackDeployment(
                    steps, desired, retain_except_on_create=retain_except_on_create
                ).update(disable_rollback=disable_rollback),
            )

    def check_updatable(self, stack: Stack) -> None:
        """Raises ApiError unless the stack's status allows an update."""
        if stack.status not in UPDATABLE:
            raise ApiError(
                "ValidationError",
                f"Stack:{stack.identity.id} is in {stack.status} state and can not be updated.",
            )

    def roll_back(self, stack: Stack, *, retain_except_on_create: bool) -> None:
        """Starts undoing a deployment that failed without rollback.

        Raises:
            ApiError: the stack's status is not CREATE_FAILED or UPDATE_FAILED.
        """
        with self._store.lock:
            status = stack.status
            if status not in ("CREATE_FAILED", "UPDATE_FAILED"):
                raise ApiError(
                    "ValidationError",
                    f"Stack:{stack.identity.id} is in {status} state and can not be rolled back.",
                )
            starting, action = {
                "CREATE_FAILED": ("ROLLBACK_IN_PROGRESS", roll_back_creation),
                "UPDATE_FAILED": ("UPDATE_ROLLBACK_IN_PROGRESS", roll_back_update),
            }[status]
            # The thread records the event, but the status must change before this returns.
            stack.status = starting
            self._start(
                stack,
                lambda steps: action(steps, "", retain_except_on_create=retain_except_on_create),
            )

    def continue_rollback(self, stack: Stack, *, skip: Collection[str]) -> None:
        """Starts a failed rollback of an update again.

        Raises:
            ApiError: the stack is not in UPDATE_ROLLBACK_FAILED.
        """
        with self._store.lock:
            if stack.status != "UPDATE_ROLLBACK_FAILED":
                raise ApiError(
                    "ValidationError",
                    f"Stack:{stack.identity.id} is in {stack.status} state and can not be updated.",
                )
            stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
            self._start(stack, lambda steps: roll_back_update(steps, "User Initiated", skip=skip))

    def cancel_update(self, stack: Stack) -> None:
        """Cancels a running update, which then rolls back.

        Raises:
            ApiError: no update is running.
        """
        with self._store.lock:
            running = self._running.get(stack.identity.id)
            if stack.status != "UPDATE_IN_PROGRESS" or running is None:
                raise ApiError(
                    "ValidationError",
                    "CancelUpdateStack cannot be called from current stack status",
                )
            running[1].cancel()

    def delete(self, stack: Stack, *, retain: Collection[str], force: bool) -> None:
        """Starts deleting a stack; does nothing if the stack is being deleted already.

        Args:
            stack: a creation in progress is stopped first.
            retain: logical ids of resources to keep.
            force: whether resources that cannot be deleted are kept instead of failing the
                deletion.

        Raises:
            ApiError: another operation is running.
        """
        with self._store.lock:
            if stack.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
                return
            unfinished = self._running.get(stack.identity.id)
            if stack.status == "CREATE_IN_PROGRESS" and unfinished is not None:
                unfinished[1].stop()
            elif stack.status.endswith("_IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS":
                raise ApiError(
                    "ValidationError",
                    f"Stack:{stack.identity.id} is in {stack.status} state and can not be deleted.",
                )

            def act(steps: ResourceSteps) -> None:
                if unfinished is not None:
                    unfinished[0].join()
                delete_stack(steps, retain=retain, force=force)

            stack.set_status("DELETE_IN_PROGRESS", "User Initiated")
            self._start(stack, act)

    def close(self) -> None:
        """Stops every operation at its next step and waits until all have ended."""
        with self._store.lock:
            self._closed = True
            running = list(self._running.values())
        for _, interrupt in running:
            interrupt.stop()
        for thread, _ in running:
            thread.join(_STOP_SECONDS)

    def _start(self, stack: Stack, action: Callable[[ResourceSteps], None]) -> None:
        with self._store.lock:
            if self._closed:
                raise ApiError("ValidationError", "The embedded AWS is stopping.")
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
            with self._store.lock:
                # A client that saw the final status may already have started the next operation.
                running = self._running.get(stack.identity.id)
                if running is not None and running[0] is threading.current_thread():
                    del self._running[stack.identity.id]
