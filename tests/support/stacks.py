"""Stacks driven through boto3, on an embedded AWS in the tests' own process."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws
from tests.support.projects import LOCAL

SETTLE_SECONDS = 60
CAPABILITIES = ["CAPABILITY_NAMED_IAM"]


def tags_of(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def model_tags(model: str, environment: str = "local") -> list[dict[str, str]]:
    return tags_of({"slipway:environment": environment, "slipway:model": model})


@dataclass(frozen=True)
class Stacks:
    aws: EmbeddedAws
    clients: LoopbackClients
    region: str

    def client(self, service: str, region: str | None = None) -> Any:
        return self.clients.client(service, region or self.region)

    @property
    def api(self) -> Any:
        return self.client("cloudformation")

    def create(self, name: str, template: dict[str, Any] | str, **options: Any) -> str:
        self.start_create(name, template, **options)
        return self.settled(name)

    def start_create(self, name: str, template: dict[str, Any] | str, **options: Any) -> None:
        self.api.create_stack(
            StackName=name, TemplateBody=_text(template), Capabilities=CAPABILITIES, **options
        )

    def update(self, name: str, template: dict[str, Any] | str, **options: Any) -> str:
        self.start_update(name, template, **options)
        return self.settled(name)

    def start_update(self, name: str, template: dict[str, Any] | str, **options: Any) -> None:
        self.api.update_stack(
            StackName=name, TemplateBody=_text(template), Capabilities=CAPABILITIES, **options
        )

    def delete(self, name: str, **options: Any) -> str:
        stack_id = self.api.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.api.delete_stack(StackName=name, **options)
        return self.settled(stack_id)

    def propose(
        self, name: str, template: dict[str, Any] | str, kind: str = "UPDATE", **options: Any
    ) -> dict[str, Any]:
        """Makes a change set, `deploy` by default, and returns what it says."""
        made = self.api.create_change_set(
            StackName=name,
            ChangeSetType=kind,
            TemplateBody=_text(template),
            Capabilities=CAPABILITIES,
            **{"ChangeSetName": "deploy", **options},
        )
        found: dict[str, Any] = self.api.describe_change_set(ChangeSetName=made["Id"])
        return found

    def execute(self, name: str, **options: Any) -> str:
        """Executes the change set `deploy` and returns the stack's final status."""
        self.api.execute_change_set(StackName=name, ChangeSetName="deploy", **options)
        return self.settled(name)

    def make_bucket(self, name: str) -> None:
        where = {"LocationConstraint": self.region}
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=where)

    def settled(self, name: str) -> str:
        """Waits until nothing is in progress, and returns the status."""
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            status: str = self.describe(name)["StackStatus"]
            if not status.endswith("_IN_PROGRESS"):
                self._show_failures(name)
                return status
            time.sleep(0.02)
        raise AssertionError(f"{name} is still {status}")

    def _show_failures(self, name: str) -> None:
        """Prints why resources failed, which pytest shows when the test does."""
        for event in self.events(name):
            if event["ResourceStatus"].endswith("_FAILED"):
                print(event["LogicalResourceId"], event.get("ResourceStatusReason"))

    def await_event(self, name: str, logical_id: str, status: str) -> None:
        end = time.monotonic() + SETTLE_SECONDS
        while f"{logical_id} {status}" not in self.history(name):
            assert time.monotonic() < end, f"{logical_id} was never {status}"
            time.sleep(0.02)

    def describe(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api.describe_stacks(StackName=name)["Stacks"][0]
        return found

    def outputs(self, name: str) -> dict[str, str]:
        return {o["OutputKey"]: o["OutputValue"] for o in self.describe(name).get("Outputs", [])}

    def events(self, name: str) -> list[dict[str, Any]]:
        """Returns every event, oldest first."""
        pages = self.api.get_paginator("describe_stack_events").paginate(StackName=name)
        return [event for page in pages for event in page["StackEvents"]][::-1]

    def history(self, name: str, since: str = "") -> list[str]:
        """Returns `LOGICALID STATUS` lines, oldest first; the stack itself is called `*`.

        With `since`, only from the last stack event of that status on.
        """
        lines = []
        for event in self.events(name):
            logical_id = event["LogicalResourceId"]
            subject = "*" if logical_id == event["StackName"] else logical_id
            lines.append(f"{subject} {event['ResourceStatus']}")
        if since:
            start = len(lines) - 1 - lines[::-1].index(f"* {since}")
            lines = lines[start:]
        return lines

    def reason(self, name: str, logical_id: str, status: str) -> str:
        for event in reversed(self.events(name)):
            if event["LogicalResourceId"] == logical_id and event["ResourceStatus"] == status:
                return str(event.get("ResourceStatusReason", ""))
        raise AssertionError(f"{logical_id} was never {status}")

    def physical_id(self, name: str, logical_id: str) -> str:
        detail = self.api.describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(detail["StackResourceDetail"]["PhysicalResourceId"])


@contextmanager
def account_stacks(directory: Path, **options: Any) -> Iterator[Stacks]:
    """An empty account in the region of `LOCAL`; the options are those of `EmbeddedAws`."""
    with embedded_aws(directory, **options) as server:
        clients = LoopbackClients(server.connection)
        yield Stacks(server, clients, LOCAL.region)
        clients.close()


def _text(template: dict[str, Any] | str) -> str:
    return template if isinstance(template, str) else json.dumps(template)
