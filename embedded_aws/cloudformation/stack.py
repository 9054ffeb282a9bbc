"""The state of stacks: resources, events, change sets, and the store that finds them.

Nothing here acts: operations change a stack, and the API shows it.
"""

import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.cloudformation.desired_state import DesiredState
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack_contents import Output, StackIdentity, StackResource

_TICK = timedelta(milliseconds=1)
STACK_TYPE = "AWS::CloudFormation::Stack"
# Statuses that begin an operation, and its OperationType. A rollback is an operation of its own.
_BEGINNINGS = {
    "REVIEW_IN_PROGRESS": "CREATE_CHANGESET",
    "CREATE_IN_PROGRESS": "CREATE_STACK",
    "UPDATE_IN_PROGRESS": "UPDATE_STACK",
    "DELETE_IN_PROGRESS": "DELETE_STACK",
    "ROLLBACK_IN_PROGRESS": "ROLLBACK",
    "UPDATE_ROLLBACK_IN_PROGRESS": "ROLLBACK",
}
# Statuses in which a stack's resources are settled and an update may start.
UPDATABLE = frozenset(
    {
        "CREATE_COMPLETE",
        "IMPORT_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "CREATE_FAILED",
        "UPDATE_FAILED",
    }
)


def now() -> datetime:
    """Returns the current time in UTC, with the API's precision (milliseconds)."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@dataclass
class Journal:
    """The data with which an unfinished update rolls back or completes.

    Attributes:
        resources: the stack's resources when they were last settled.
        desired: the state at that time; None for a stack that is being created.
        outputs: the outputs at that time.
        superseded: resources created since and replaced again, which are deleted in any case.
    """

    resources: dict[str, StackResource]
    desired: DesiredState | None
    outputs: dict[str, Output]
    superseded: list[StackResource] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """The planned change of one resource.

    Attributes:
        action: `Add`, `Import`, `Modify` or `Remove`.
        replacement: `True`, `False` or `Conditional`; None unless modified.
        details: each changed property and attribute, in the API's form.
    """

    logical_id: str
    type: str
    action: str
    physical_id: str | None = None
    replacement: str | None = None
    details: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class ChangePlan:
    """Every change, and whether there is anything to do."""

    changes: tuple[Change, ...]
    is_empty: bool


@dataclass
class ChangeSet:
    """A planned change of one stack, and the parameters of the request for it."""

    arn: str
    created: datetime
    desired: DesiredState
    plan: ChangePlan
    submitted: Mapping[str, Any]
    is_executed: bool = False

    @property
    def name(self) -> str:
        return str(self.submitted["ChangeSetName"])

    @property
    def status(self) -> str:
        return "FAILED" if self.plan.is_empty else "CREATE_COMPLETE"

    @property
    def execution_status(self) -> str:
        if self.is_executed:
            return "EXECUTE_COMPLETE"
        return "UNAVAILABLE" if self.plan.is_empty else "AVAILABLE"


@dataclass
class Stack:
    """A stack, from its first change set until long after its deletion."""

    identity: StackIdentity
    status: str
    created: datetime
    reason: str | None = None
    updated: datetime | None = None
    deleted: datetime | None = None
    desired: DesiredState | None = None
    resources: dict[str, StackResource] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    # In the form of the API, as are the members of the operation that new events belong to.
    events: list[Mapping[str, Any]] = field(default_factory=list)
    operation: Mapping[str, str] = field(default_factory=dict)
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)
    journal: Journal | None = None
    disable_rollback: bool = False
    # Whether a rollback deletes new resources even if their policy retains them.
    retain_except_on_create: bool = False
    termination_protection: bool = False
    role_arn: str | None = None
    change_set_id: str | None = None
    client_token: str | None = None
    _changed: threading.Condition = field(
        default_factory=threading.Condition, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        return self.identity.name

    def take_options(self, parameters: Mapping[str, Any]) -> None:
        """Takes over the options of a request that begins an operation."""
        self.client_token = parameters.get("ClientRequestToken")
        self.retain_except_on_create = bool(parameters.get("RetainExceptOnCreate"))

    def wait_until_settled(self, seconds: float) -> None:
        """Waits until no operation is in progress, or until the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_in_progress(), seconds)

    def _is_in_progress(self) -> bool:
        # A stack under review has a change set, and nothing happens to it.
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def open_journal(self) -> Journal:
        if self.journal is None:
            raise RuntimeError(f"stack {self.name} has no journal to go by")
        return self.journal

    def find_change_set(self, name_or_arn: str) -> ChangeSet | None:
        return next(
            (item for item in self.change_sets.values() if name_or_arn in (item.name, item.arn)),
            None,
        )

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Changes the stack's status and records the event; some begin an operation."""
        kind = _BEGINNINGS.get(status)
        last = self.events[-1]["ResourceStatus"] if self.events else None
        if kind == "ROLLBACK" and last == "UPDATE_ROLLBACK_FAILED":
            kind = "CONTINUE_ROLLBACK"
        if kind is not None:
            self.operation = {"OperationId": str(uuid.uuid4()), "OperationType": kind}
        # The event comes first, so that a client that polls the status can rely on the event.
        self.record(self.name, self.identity.id, STACK_TYPE, status, reason)
        with self._changed:
            self.status, self.reason = status, reason
            self._changed.notify_all()

    def record(
        self,
        logical_id: str,
        physical_id: str,
        type_name: str,
        status: str,
        reason: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        unique = str(uuid.uuid4())
        # Clients order events by their time in milliseconds, so no two events may share one.
        moment = now()
        if self.events:
            moment = max(moment, self.events[-1]["Timestamp"] + _TICK)
        self.events.append(
            {
                **self.operation,
                "StackId": self.identity.id,
                "StackName": self.name,
                "EventId": unique if type_name == STACK_TYPE else f"{logical_id}-{status}-{unique}",
                "EventType": "STACK_EVENT",
                "LogicalResourceId": logical_id,
                "PhysicalResourceId": physical_id,
                "ResourceType": type_name,
                "Timestamp": moment,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "ResourceProperties": json.dumps(properties) if properties is not None else None,
                "ClientRequestToken": self.client_token,
            }
        )


class StackStore:
    """Every stack of every region, including deleted stacks.

    Attributes:
        lock: held to check a status and change it in one step.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._stacks: dict[str, Stack] = {}

    def add(self, stack: Stack) -> None:
        self._stacks[stack.identity.id] = stack

    def find(self, region: str, name_or_id: str) -> Stack | None:
        """Returns the stack of that id, or the live stack of that name, or None."""
        if name_or_id.startswith("arn:"):
            return self._stacks.get(name_or_id)
        return next(
            (
                stack
                for stack in self.all(region)
                if stack.name == name_or_id and stack.status != "DELETE_COMPLETE"
            ),
            None,
        )

    def all(self, region: str) -> list[Stack]:
        """Returns a region's stacks, newest first."""
        with self.lock:
            stacks = list(self._stacks.values())
        return [stack for stack in reversed(stacks) if stack.identity.region == region]

    def exports(self, region: str) -> Iterator[tuple[Stack, Output]]:
        """Yields every exported output of a region with its stack."""
        for stack in self.all(region):
            if stack.status != "DELETE_COMPLETE":
                for output in list(stack.outputs.values()):
                    if output.export_name is not None:
                        yield stack, output

    def importers(self, region: str, export_name: str) -> list[str]:
        """Returns the names of the stacks that import an export."""
        return [
            stack.name
            for stack in self.all(region)
            if stack.status != "DELETE_COMPLETE"
            and stack.desired is not None
            and export_name in stack.desired.imported_exports
        ]


@dataclass(frozen=True)
class OperationContext:
    """The objects that every operation uses."""

    clients: LoopbackClients
    registry: ResourceRegistry
    store: StackStore
