"""A running production variant: one container, however many instances are declared."""

import contextlib
import logging
import math
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedded_aws.clients import LoopbackClients
from embedded_aws.clock import AccountClock, Deadline
from embedded_aws.hosting import model_data
from embedded_aws.hosting.capture import CaptureWriter
from embedded_aws.hosting.connections import ContainerConnections
from embedded_aws.hosting.launch import CannotLaunchError, Launch, Launcher, Placement, Running
from embedded_aws.hosting.logs import LogShipper, LogStream
from embedded_aws.hosting.metrics import Source
from embedded_aws.hosting.model_data import ModelDataError, ModelSource
from embedded_aws.hosting.models import primary_container
from embedded_aws.hosting.ports import PortPool
from embedded_aws.hosting.role_access import RoleAccess
from embedded_aws.hosting.variant_base import Variant
from embedded_aws.hosting.volume_key import VolumeGrant, VolumeKeyError
from embedded_aws.hosting.vpc import Attachment, VpcConfig, VpcError

logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html: a container
# has 8 minutes to pass the health check and 30 seconds from SIGTERM to SIGKILL.
_DEFAULT_HEALTH_CHECK_SECONDS = 480
# The API names no default; its maximum is the most patient choice.
_DEFAULT_DOWNLOAD_SECONDS = 3600
_STOP_GRACE_SECONDS = 30.0
_FIRST_RESTART_SECONDS, _LAST_RESTART_SECONDS = 1.0, 30.0
_FIRST_PING_SECONDS, _LAST_PING_SECONDS = 0.02, 0.5
_REASON_CHARACTERS = 1024  # botocore's maximum of FailureReason


class VariantStartError(Exception):
    """A variant cannot come into service; the message is the endpoint's FailureReason."""


@dataclass
class HostingContext:
    """The objects that all running variants share.

    Attributes:
        clients: calls S3, EC2, KMS and CloudWatch Logs.
        directory: holds model directories, homes and logs.
        launcher: starts containers.
        time_scale: factor on every configured timeout and wait; tests shorten them.
        clock: the account's time. The waits of updates pass on it.
        without_capacity: the instance types that AWS has no capacity of.
        ports: ports for containers.
        logs: ships the containers' output.
        captures: writes captured requests and answers.
    """

    clients: LoopbackClients
    directory: Path
    launcher: Launcher
    time_scale: float = 1.0
    clock: AccountClock = field(default_factory=AccountClock)
    without_capacity: Collection[str] = ()
    ports: PortPool = field(default_factory=PortPool)
    logs: LogShipper = field(init=False)
    captures: CaptureWriter = field(init=False)

    def __post_init__(self) -> None:
        self.logs = LogShipper(self.clients)
        self.captures = CaptureWriter(self.clients)

    def deadline(self, wait_seconds: float) -> Deadline:
        """Returns the end of a wait that begins now, of seconds on the account's clock."""
        return Deadline(self.clock, wait_seconds, self.time_scale)


class RunningVariant(Variant):
    """The container of one variant, from its start to its stop.

    Args:
        context: objects that variants share.
        region: the endpoint's region.
        endpoint_name: EndpointName.
        config_name: name of the endpoint configuration.
        declared: the variant of the endpoint configuration.
        model: the CreateModel request of its model.
        volume_key: KmsKeyId of the endpoint configuration; None without one.
        component_name: the inference component of which this is a copy; None for a variant.

    Attributes:
        image: the model's image.
        role: ARN of the model's execution role.
        home: the directory that stands for the instance's disk.
        source: instance and container, as metrics name them.
        connections: connections to the container; valid once `start` returned.
    """

    def __init__(
        self,
        context: HostingContext,
        *,
        region: str,
        endpoint_name: str,
        config_name: str,
        declared: Mapping[str, Any],
        model: Mapping[str, Any],
        volume_key: str | None,
        component_name: str | None = None,
    ) -> None:
        super().__init__(declared, config_name, context.without_capacity)
        self._context = context
        self._region = region
        # https://github.com/huggingface/skills, hf-cloud-sagemaker (read 2026-11-24) quotes the
        # group of a component.
        self.log_group = f"/aws/sagemaker/Endpoints/{endpoint_name}"
        self._subject = f"production variant {self.name}"
        if component_name is not None:
            self.log_group = f"/aws/sagemaker/InferenceComponents/{component_name}"
            self._subject = f"inference component {component_name}"
        self._model = model
        self.role: str | None = model.get("ExecutionRoleArn")
        self._container = primary_container(model)
        self.image: str = self._container["Image"]
        # In the form of an EC2 instance id, which names the stream in SageMaker too.
        instance_id = f"i-{secrets.token_hex(9)[:17]}"
        self.source = Source(instance_id, container_id=secrets.token_hex(32))
        self.home = context.directory / "instances" / instance_id
        self._model_directory = self.home / "model"
        self._port: int | None = None
        self._attachment: Attachment | None = None
        self._volume_grant: VolumeGrant | None = None
        if volume_key is not None:
            kms = context.clients.client("kms", region)
            self._volume_grant = VolumeGrant(kms, volume_key, self.role)
        self._process: Running | None = None
        self._log: LogStream | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._keeper: threading.Thread | None = None
        self._healthy = threading.Event()
        self._in_flight = self._most_in_flight = 0
        self._idle = threading.Condition()
        self.connections: ContainerConnections

    @property
    def ancestor_id(self) -> int | None:
        """Returns the process whose descendants are the container's; None if none is known."""
        process = self._process
        return None if process is None else process.ancestor_id

    def start(self) -> None:
        """Downloads the model, starts the program and waits until /ping answers 200.

        Raises:
            VariantStartError: one of these failed; the caller must call `stop`, which leaves
                nothing running.
        """
        try:
            launch = self._context.launcher.find(self.image)
        except CannotLaunchError as error:
            raise VariantStartError(str(error)[:_REASON_CHARACTERS]) from error
        self._model_directory.mkdir(parents=True)
        if self._volume_grant is not None:
            with self._named_errors():
                self._volume_grant.create()
        if (vpc := VpcConfig.of(self._model)) is not None:
            self._attach(vpc)
        self._download()
        port = self._context.ports.take()
        self._port = port
        self.connections = ContainerConnections(port)
        self._log = self._context.logs.open(
            region=self._region,
            group=self.log_group,
            stream=f"{self.name}/{self.source.instance_id}",
            file=self._context.directory / "logs" / f"{self.name}-{self.home.name}.log",
        )
        placement = Placement(
            name=f"slipway-{self.source.instance_id}",
            declared=self._container.get("Environment", {}),
            region=self._region,
            port=port,
            model_directory=self._model_directory,
            home=self.home,
            is_isolated=self._model.get("EnableNetworkIsolation", False),
        )
        limit_seconds = self.declared.get(
            "ContainerStartupHealthCheckTimeoutInSeconds", _DEFAULT_HEALTH_CHECK_SECONDS
        )
        self._await_health(self._launch(launch, placement), limit_seconds)
        self._keeper = threading.Thread(
            target=self._keep_running, args=(launch, placement), name="keeper", daemon=True
        )
        self._keeper.start()

    @property
    def is_healthy(self) -> bool:
        """Returns whether the process passed its health check and runs."""
        return self._healthy.is_set()

    @property
    def images(self) -> tuple[str, ...]:
        """Returns the model's image."""
        return (self.image,)

    @property
    def in_flight(self) -> int:
        """Returns the number of requests without an answer."""
        return self._in_flight

    def take_most_in_flight(self) -> int:
        """Returns the most requests at a time since the last call."""
        with self._idle:
            most, self._most_in_flight = self._most_in_flight, self._in_flight
        return most

    def enter(self) -> None:
        """Counts a request in."""
        with self._idle:
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)

    def leave(self) -> None:
        """Counts a request out."""
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()

    def drain(self, timeout_seconds: float) -> None:
        """Waits until no request is in flight, at most for that time."""
        with self._idle:
            self._idle.wait_for(lambda: self._in_flight == 0, timeout_seconds)

    def request_stop(self) -> None:
        """Begins to stop; a start in progress fails."""
        self._stopping.set()
        with self._lock:
            if self._process is not None:
                self.connections.close()
                self._process.request_stop()

    def stop(self) -> None:
        """Stops the process and waits; only the variant's log is left."""
        self.request_stop()
        if self._process is not None:
            self._process.stop()
        if self._keeper is not None:
            self._keeper.join()
        if self._log is not None:
            self._context.logs.release(self._log)
            self._log = None
        if self._port is not None:
            self._context.ports.give_back(self._port)
            self._port = None
        if self._attachment is not None:
            self._attachment.detach()
            self._attachment = None
        if self._volume_grant is not None:
            self._volume_grant.revoke()
        if self.home.exists():
            model_data.remove(self._model_directory)
            shutil.rmtree(self.home, ignore_errors=True)

    @property
    def _named(self) -> str:
        return self._subject[0].upper() + self._subject[1:]

    def _attach(self, vpc: VpcConfig) -> None:
        self._attachment = Attachment(
            self._context.clients.client("ec2", self._region), vpc, self.role
        )
        with self._named_errors():
            self._attachment.attach(f"{self.log_group} {self.name}")

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (VolumeKeyError, VpcError) as error:
            raise VariantStartError(str(error)[:_REASON_CHARACTERS]) from error

    def _download(self) -> None:
        source = ModelSource.of(self._container)
        if source is None:
            return
        if self._attachment is not None:
            with self._named_errors():
                self._attachment.require_s3(source.uri)
        seconds = self.declared.get("ModelDataDownloadTimeoutInSeconds", _DEFAULT_DOWNLOAD_SECONDS)
        s3 = self._context.clients.client("s3", self._region)
        try:
            model_data.download(
                source,
                RoleAccess(s3, self.role),
                self._model_directory,
                timeout_seconds=seconds * self._context.time_scale,
            )
        except ModelDataError as error:
            raise VariantStartError(f"{self._named}: {error}"[:_REASON_CHARACTERS]) from error

    def _launch(self, launch: Launch, placement: Placement) -> Running:
        with self._lock:
            if self._stopping.is_set():
                raise VariantStartError(f"{self._named} was stopped.")
            self._process = launch(
                placement,
                on_line=self._write,
                grace_seconds=_STOP_GRACE_SECONDS * self._context.time_scale,
            )
            return self._process

    def _write(self, line: str) -> None:
        log = self._log  # `stop` may remove it meanwhile
        if log is not None:
            log.write(line)

    def _await_health(self, process: Running, limit_seconds: float) -> None:
        """Puts the program into service once /ping answers 200."""
        deadline = time.monotonic() + limit_seconds * self._context.time_scale
        pause = _FIRST_PING_SECONDS
        while not self.connections.is_healthy():
            if process.exited.wait(pause):
                what = f"The container exited with status {process.exit_status}"
                raise VariantStartError(self._ping_reason(what, process))
            if time.monotonic() > deadline:
                what = f"The container did not answer /ping with 200 within {limit_seconds} seconds"
                raise VariantStartError(self._ping_reason(what, process))
            pause = min(pause * 1.5, _LAST_PING_SECONDS)
        self._healthy.set()

    def _ping_reason(self, what: str, process: Running) -> str:
        """Returns SageMaker's sentence, followed by the container's last lines of output."""
        reason = (
            f"The primary container for {self._subject} did not pass the ping "
            f"health check. Please check CloudWatch logs for this endpoint. {what}"
        )
        lines = [line for line in process.last_lines if line]
        if not lines:
            return f"{reason}; it wrote nothing."
        reason += "; its last lines: "
        room = _REASON_CHARACTERS - len(reason)
        kept = " | ".join(lines)
        return reason + (kept if len(kept) <= room else "..." + kept[3 - room :])

    def _keep_running(self, launch: Launch, placement: Placement) -> None:
        """Starts the program again when it ends by itself, as SageMaker restarts a container."""
        pause = _FIRST_RESTART_SECONDS
        while True:
            process = self._process
            if process is None:
                return
            process.exited.wait()
            self._healthy.clear()
            self.connections.drop_idle()
            if self._stopping.is_set():
                return
            line = f"The container exited with status {process.exit_status}; it is restarted."
            logger.warning("%s %s: %s", self.log_group, self.name, line)
            self._write(line)
            if self._stopping.wait(pause * self._context.time_scale):
                return
            pause = min(pause * 2, _LAST_RESTART_SECONDS)
            # A program that ends again is restarted again, however long it takes to answer.
            with contextlib.suppress(VariantStartError):
                self._await_health(self._launch(launch, placement), math.inf)
