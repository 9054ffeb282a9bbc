"""SageMaker's control plane for training jobs."""

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.embedded_aws.api import ApiError, Caller, Operation, ValidationError
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.hosting.resources.records import Records, now
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.processes.logs import LogShipper
from slipway.embedded_aws.training.jobs import UNDER_WAY, TrainingJob
from slipway.embedded_aws.training.requests import checked_program
from slipway.embedded_aws.training.run import JobRun, TrainingContext


class Training:
    """Training jobs, each in a thread that ends with this object, and their `operations`."""

    def __init__(
        self,
        clients: LoopbackClients,
        directory: Path,
        tags: Tags,
        *,
        programs: Mapping[str, ContainerProgram],
        time_scale: float = 1.0,
    ) -> None:
        # Left by a killed server: nothing refers to it any more.
        shutil.rmtree(directory / "training", ignore_errors=True)
        self._clients = clients
        self._programs = programs
        self._logs = LogShipper(clients)
        self._context = TrainingContext(clients, directory / "training", self._logs, time_scale)
        self._records: Records[TrainingJob] = Records(
            "TrainingJob",
            noun="training job",
            arn_type="training-job",
            tags=tags,
            listed_as="TrainingJobSummaries",
        )
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()
        self._closing = False
        self.operations: Mapping[str, Operation] = {
            "CreateTrainingJob": self.create,
            "DescribeTrainingJob": self.describe,
            "ListTrainingJobs": self.list,
            "StopTrainingJob": self.stop,
        }

    def create(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        name = parameters["TrainingJobName"]
        arn = self._records.arn(caller, name)
        program = checked_program(caller, parameters, self._clients, self._programs)
        kept = {key: value for key, value in parameters.items() if key != "Tags"}
        job = TrainingJob(caller.region, name, arn, now(), kept)
        run = JobRun(self._context, job, program, lambda: self._forget(arn))
        with self._lock:
            if self._closing:
                raise ValidationError("The embedded AWS is being stopped.")
            if self._records.find(caller.region, name) is not None:
                raise ApiError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    f"training job with this name already exists ({arn})",
                )
            self._records.add(caller, job, parameters.get("Tags", ()))
            self._runs[arn] = run
        run.start()
        return {"TrainingJobArn": arn}

    def describe(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        return self._find(caller, parameters).describe()

    def list(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        """Handles ListTrainingJobs, which begins with the oldest, unlike the lists of hosting."""
        return self._records.list(caller, {"SortOrder": "Ascending", **parameters})

    def stop(self, caller: Caller, parameters: dict[str, Any]) -> dict[str, Any]:
        job = self._find(caller, parameters)
        with job.lock:
            if job.status not in UNDER_WAY:
                raise ValidationError(
                    f"The request was rejected because the training job is in status {job.status}."
                )
            if job.status == "InProgress":
                job.move("Stopping", "Stopping")
        with self._lock:
            run = self._runs.get(job.arn)
        if run is not None:
            run.request_stop()
        return {}

    def close(self) -> None:
        with self._lock:
            self._closing = True
            runs = list(self._runs.values())
        for run in runs:
            run.close()
        self._logs.close()

    def _find(self, caller: Caller, parameters: Mapping[str, Any]) -> TrainingJob:
        job = self._records.find(caller.region, parameters["TrainingJobName"])
        if job is None:
            raise ValidationError("Requested resource not found.")
        return job

    def _forget(self, arn: str) -> None:
        with self._lock:
            self._runs.pop(arn, None)
