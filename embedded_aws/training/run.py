"""Takes one training job from its input to its output, in a thread of its own."""

import json
import logging
import secrets
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.families import container_environment
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.hosting.fleets.model_download import ModelDataError, download_prefix
from slipway.embedded_aws.hosting.resources.records import now
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.processes.logs import LogShipper, LogStream
from slipway.embedded_aws.processes.process import SupervisedProcess, start_program
from slipway.embedded_aws.training.jobs import TrainingJob
from slipway.embedded_aws.training.requests import channel_place

logger = logging.getLogger(__name__)

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# StopTrainingJob: SIGTERM delays the end for 120 seconds,
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StopTrainingJob.html
_STOP_GRACE_SECONDS = 120.0
_REASON_CHARACTERS = 1024  # botocore's maximum of FailureReason
_DEFAULT_RUNTIME_SECONDS = 86_400  # StoppingCondition's documentation
_DEFAULT_ARGUMENTS = ("train",)
_HOST = "algo-1"


class JobError(Exception):
    """The job fails; the message is its FailureReason."""


@dataclass(frozen=True)
class TrainingContext:
    """The objects that all jobs share; in `directory` each job has a folder while it runs."""

    clients: LoopbackClients
    directory: Path
    logs: LogShipper
    time_scale: float


class JobRun:
    def __init__(
        self,
        context: TrainingContext,
        job: TrainingJob,
        program: ContainerProgram,
        on_end: Callable[[], None],
    ) -> None:
        self._context = context
        self._job = job
        self._program = program
        self._on_end = on_end
        self._s3 = context.clients.client("s3", job.region)
        self._access = RoleAccess(self._s3, job.parameters["RoleArn"])
        self._home = context.directory / secrets.token_hex(8)
        self._layout = Layout(self._home / "ml")
        self._process: SupervisedProcess | None = None
        self._stop_asked = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="training-job", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        """Begins to stop the job: SIGTERM, and 120 seconds later SIGKILL."""
        self._stop_asked.set()
        with self._lock:
            if self._process is not None:
                self._process.request_stop()

    def close(self) -> None:
        self._closing.set()
        self._stop_asked.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        job = self._job
        ended_as, failure = "", ""
        try:
            ended_as = self._work()
        except JobError as error:
            failure = str(error)
        except Exception as error:
            logger.exception("training job %s failed", job.name)
            failure = (
                "InternalServerError: We encountered an internal error. Please try again. "
                f"({type(error).__name__}: {error})"
            )
        # Before the last status: nothing of the job is left for those who wait for that.
        shutil.rmtree(self._home, ignore_errors=True)
        if failure:
            self._fail(failure)
        else:
            job.move(ended_as, "Completed" if ended_as == "Completed" else "Stopped")
        logger.info("training job %s is %s", job.name, job.status)
        self._on_end()

    def _fail(self, reason: str) -> None:
        with self._job.lock:
            self._job.failure_reason = reason[:_REASON_CHARACTERS]
            self._job.move("Failed", "Failed")

    def _work(self) -> str:
        """Does the job; returns the secondary status that it ends with."""
        job = self._job
        job.move("Starting")
        self._home.mkdir(parents=True)
        self._layout.make(job.parameters)
        limit: float = job.parameters["StoppingCondition"].get(
            "MaxRuntimeInSeconds", _DEFAULT_RUNTIME_SECONDS
        )
        deadline = time.monotonic() + limit * self._context.time_scale
        if self._download(deadline):
            return "Stopped"
        timed_out = self._train(deadline)
        if self._closing.is_set():
            return "Stopped"
        self._enter("Uploading")
        self._upload()
        if timed_out:
            return "MaxRuntimeExceeded"
        return "Stopped" if self._stop_asked.is_set() else "Completed"

    def _enter(self, secondary: str) -> None:
        """Moves to the next status; a job that is stopping keeps its status."""
        with self._job.lock:
            if self._job.status == "InProgress":
                self._job.move(secondary)

    def _download(self, deadline: float) -> bool:
        """Downloads the channels; returns whether a stop was asked for meanwhile."""
        channels = self._job.parameters.get("InputDataConfig", ())
        if channels:
            self._enter("Downloading")
        for channel in channels:
            bucket, prefix = channel_place(channel)
            directory = self._layout.channel(channel["ChannelName"])
            try:
                download_prefix(self._access, bucket, prefix, directory, deadline)
            except TimeoutError:
                raise JobError(
                    "ClientError: Data download took longer than MaxRuntimeInSeconds."
                ) from None
            except (ClientError, BotoCoreError, ModelDataError, OSError) as error:
                raise JobError(f"ClientError: Data download failed: {error}") from error
            if self._stop_asked.is_set():
                return True
        return False

    def _train(self, deadline: float) -> bool:
        """Runs the program; returns whether it was stopped because it took too long."""
        self._enter("Training")
        log = self._open_log()
        try:
            process = self._launch(log.write)
            if process is None:
                return False
            with self._job.lock:
                self._job.started = now()
            timed_out = not exits_within(process, deadline - time.monotonic())
            if timed_out and not self._stop_asked.is_set():
                process.stop()
            else:
                timed_out = False
                process.exited.wait()
        finally:
            self._context.logs.release(log)
            with self._job.lock:
                self._job.ended = now()
        status = process.exit_status
        if status != 0 and not timed_out and not self._stop_asked.is_set():
            said = self._layout.failure() or "See job logs for more information"
            ending = f", exit code: {status}"
            room = _REASON_CHARACTERS - len("AlgorithmError: ") - len(ending)
            raise JobError(f"AlgorithmError: {said[:room]}{ending}")
        return timed_out

    def _open_log(self) -> LogStream:
        name = self._job.name
        return self._context.logs.open(
            region=self._job.region,
            group=LOG_GROUP,
            stream=f"{name}/{_HOST}-{int(time.time())}",
            file=self._context.directory.parent / "logs" / f"training-{name}.log",
        )

    def _launch(self, on_line: Callable[[str], None]) -> SupervisedProcess | None:
        """Starts the program; returns None if a stop was asked for first."""
        job, parameters = self._job, self._job.parameters
        isolated = parameters.get("EnableNetworkIsolation", False)
        environment = {
            **container_environment(
                program=self._program,
                declared=parameters.get("Environment", {}),
                region=job.region,
                home=self._home,
                connection=None if isolated else self._context.clients.connection,
            ),
            **self._layout.environment(parameters),
            "TRAINING_JOB_NAME": job.name,
            "TRAINING_JOB_ARN": job.arn,
        }
        arguments = parameters["AlgorithmSpecification"].get("ContainerArguments")
        with self._lock:
            if self._stop_asked.is_set():
                return None
            self._process = start_program(
                command=(*self._program.entrypoint, *(arguments or _DEFAULT_ARGUMENTS)),
                environment=environment,
                directory=self._home,
                on_line=on_line,
                grace_seconds=_STOP_GRACE_SECONDS * self._context.time_scale,
            )
            return self._process

    def _upload(self) -> None:
        output = self._job.parameters["OutputDataConfig"]
        parts = urlsplit(output["S3OutputPath"])
        base = f"{parts.path.strip('/')}/{self._job.name}/output".lstrip("/")
        extra = {}
        if key := output.get("KmsKeyId"):
            extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
        try:
            if output.get("CompressionType", "GZIP") == "NONE":
                self._upload_files(self._layout.model, parts.netloc, f"{base}/model", extra)
                self._upload_files(self._layout.output_data, parts.netloc, f"{base}/data", extra)
                address = f"{base}/model/"
            else:
                address = f"{base}/model.tar.gz"
                self._upload_archive(self._layout.model, parts.netloc, address, extra)
                self._upload_archive(
                    self._layout.output_data, parts.netloc, f"{base}/output.tar.gz", extra
                )
        except (Boto3Error, ClientError, BotoCoreError, OSError) as error:
            raise JobError(f"ClientError: Artifact upload failed: {error}") from error
        with self._job.lock:
            self._job.model_artifacts = f"s3://{parts.netloc}/{address}"

    def _upload_files(
        self, directory: Path, bucket: str, prefix: str, extra: Mapping[str, str]
    ) -> None:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(directory).as_posix()}"
                self._access.require_writable(bucket, key, extra.get("SSEKMSKeyId"))
                self._s3.upload_file(str(path), bucket, key, ExtraArgs=dict(extra))

    def _upload_archive(
        self, directory: Path, bucket: str, key: str, extra: Mapping[str, str]
    ) -> None:
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        if not files:
            return
        self._access.require_writable(bucket, key, extra.get("SSEKMSKeyId"))
        archive = self._home / "upload.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for path in files:
                tar.add(path, path.relative_to(directory).as_posix())
        self._s3.upload_file(str(archive), bucket, key, ExtraArgs=dict(extra))
        archive.unlink()


def exits_within(process: SupervisedProcess, seconds: float) -> bool:
    return process.exited.wait(seconds)


class Layout:
    """One job's directories, below the one that stands for /opt/ml.

    https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html
    """

    def __init__(self, root: Path) -> None:
        self._inputs = root / "input"
        self.config = self._inputs / "config"
        self.model = root / "model"
        self.output = root / "output"
        self.output_data = self.output / "data"

    def channel(self, name: str) -> Path:
        return self._inputs / "data" / name

    def make(self, parameters: Mapping[str, Any]) -> None:
        channels = parameters.get("InputDataConfig", ())
        for directory in (
            self.config,
            self.model,
            self.output_data,
            *(self.channel(channel["ChannelName"]) for channel in channels),
        ):
            directory.mkdir(parents=True)
        resources = parameters["ResourceConfig"]
        self._write("hyperparameters.json", parameters.get("HyperParameters", {}))
        self._write(
            "inputdataconfig.json",
            {
                channel["ChannelName"]: {
                    "TrainingInputMode": "File",
                    "S3DistributionType": channel["DataSource"]["S3DataSource"].get(
                        "S3DataDistributionType", "FullyReplicated"
                    ),
                    "RecordWrapperType": channel.get("RecordWrapperType", "None"),
                }
                for channel in channels
            },
        )
        self._write(
            "resourceconfig.json",
            {
                "current_host": _HOST,
                "current_instance_type": resources["InstanceType"],
                "hosts": [_HOST],
                "network_interface_name": "eth0",
            },
        )

    def environment(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        channels = [channel["ChannelName"] for channel in parameters.get("InputDataConfig", ())]
        return {
            **{f"SM_CHANNEL_{name.upper()}": str(self.channel(name)) for name in channels},
            "SM_INPUT_CONFIG_DIR": str(self.config),
            "SM_MODEL_DIR": str(self.model),
            "SM_OUTPUT_DIR": str(self.output),
            "SM_OUTPUT_DATA_DIR": str(self.output_data),
        }

    def failure(self) -> str:
        try:
            return (self.output / "failure").read_text("utf-8", errors="replace").strip()
        except OSError:
            return ""

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        (self.config / name).write_text(json.dumps(content), encoding="utf-8")
