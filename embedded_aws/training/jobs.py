"""The state of a training job, and its form in the API's answers."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slipway.embedded_aws.api import without_none
from slipway.embedded_aws.hosting.resources.records import now

UNDER_WAY = ("InProgress", "Stopping")
# The messages of DescribeTrainingJob's documentation, by secondary status.
_MESSAGES = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Uploading": "Uploading generated training model",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopping": "Stopping the training job",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
}


@dataclass
class TrainingJob:
    """A training job; every field is read and written under `lock`.

    `parameters` are the create request without its tags. The program ran between `started` and
    `ended`.
    """

    region: str
    name: str
    arn: str
    created: datetime
    parameters: Mapping[str, Any]
    modified: datetime = field(default_factory=now)
    status: str = "InProgress"
    secondary: str = "Starting"
    transitions: list[dict[str, Any]] = field(default_factory=list)
    failure_reason: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    model_artifacts: str | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def move(self, secondary: str, status: str | None = None) -> None:
        """Moves to the next secondary status; a job that is stopping stays so until it ends."""
        with self.lock:
            moment = now()
            if self.transitions:
                self.transitions[-1]["EndTime"] = moment
            transition = {"Status": secondary, "StartTime": moment}
            transition["StatusMessage"] = _MESSAGES[secondary]
            self.transitions.append(transition)
            self.secondary = secondary
            if status is not None:
                self.status = status
            if self.status not in UNDER_WAY:
                transition["EndTime"] = moment
            self.modified = moment

    def describe(self) -> dict[str, Any]:
        with self.lock:
            model = self.model_artifacts
            seconds = None
            if self.started is not None and self.ended is not None:
                seconds = int((self.ended - self.started).total_seconds())
            return without_none(
                {
                    "EnableNetworkIsolation": False,
                    "EnableInterContainerTrafficEncryption": False,
                    "EnableManagedSpotTraining": False,
                    **self.parameters,
                    "TrainingJobArn": self.arn,
                    "TrainingJobStatus": self.status,
                    "SecondaryStatus": self.secondary,
                    "SecondaryStatusTransitions": [dict(item) for item in self.transitions],
                    "CreationTime": self.created,
                    "LastModifiedTime": self.modified,
                    "TrainingStartTime": self.started,
                    "TrainingEndTime": self.ended,
                    "FailureReason": self.failure_reason,
                    "ModelArtifacts": {"S3ModelArtifacts": model} if model is not None else None,
                    "TrainingTimeInSeconds": seconds,
                    "BillableTimeInSeconds": seconds,
                }
            )
