"""The state of a build, and its form in the API's answers."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slipway.embedded_aws.hosting.resources.records import now

IN_PROGRESS = "IN_PROGRESS"
_SECRET = "SECRETS_MANAGER"  # noqa: S105  # the type of a variable


@dataclass
class Build:
    """A build; every field is read and written under `lock`.

    Attributes:
        identifier: `PROJECT:UUID`.
        number: counts the builds of the project from 1.
        project: what BatchGetProjects shows of its project, with the request's overrides.
        phases: the phases that it entered, in the API's form.
    """

    region: str
    identifier: str
    arn: str
    number: int
    project: Mapping[str, Any]
    log_group: str
    log_stream: str
    created: datetime = field(default_factory=now)
    status: str = IN_PROGRESS
    ended: datetime | None = None
    phases: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def project_name(self) -> str:
        return self.identifier.partition(":")[0]

    @property
    def variables(self) -> list[Mapping[str, str]]:
        return list(self.project["environment"].get("environmentVariables", ()))

    @property
    def secret_references(self) -> dict[str, str]:
        """Returns the variables that come from Secrets Manager: name to reference."""
        return {
            item["name"]: item["value"]
            for item in self.variables
            if item.get("type", "PLAINTEXT") == _SECRET
        }

    def enter(self, phase: str) -> None:
        """Begins a phase; the phase before it must have ended."""
        with self.lock:
            self.phases.append({"phaseType": phase, "startTime": now()})

    def leave(self, status: str = "SUCCEEDED", context: tuple[str, str] = ("", "")) -> None:
        """Ends the phase; status code and message say why it failed."""
        with self.lock:
            phase, moment = self.phases[-1], now()
            phase["endTime"] = moment
            phase["durationInSeconds"] = int((moment - phase["startTime"]).total_seconds())
            phase["phaseStatus"] = status
            phase["contexts"] = [{"statusCode": context[0], "message": context[1]}]

    def end(self, status: str) -> None:
        with self.lock:
            self.enter("COMPLETED")
            self.status = status
            self.ended = now()

    def describe(self) -> dict[str, Any]:
        with self.lock:
            return {
                # The serializer leaves out members of a project alone, and those that are None.
                **self.project,
                "id": self.identifier,
                "arn": self.arn,
                "buildNumber": self.number,
                "startTime": self.created,
                "endTime": self.ended,
                "currentPhase": self.phases[-1]["phaseType"],
                "buildStatus": self.status,
                "buildComplete": self.ended is not None,
                "projectName": self.project_name,
                "phases": [dict(phase) for phase in self.phases],
                "artifacts": {"location": ""},
                "initiator": "slipway-local",
                "logs": {
                    "groupName": self.log_group,
                    "streamName": self.log_stream,
                    "deepLink": (
                        f"https://console.aws.amazon.com/cloudwatch/home?region={self.region}"
                        f"#logsV2:log-groups/log-group/{self.log_group}"
                    ),
                    "cloudWatchLogs": {"status": "ENABLED", "groupName": self.log_group},
                },
            }
