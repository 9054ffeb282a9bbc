"""A running production variant: one container, however many instances are declared."""

import contextlib
import logging
import math
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import AccountClock, Deadline
from slipway.embedded_aws.hosting.families.program import CannotLaunchError
from slipway.embedded_aws.hosting.fleets import model_download
from slipway.embedded_aws.hosting.fleets.attachments import (
    AttachmentError,
    network_interface,
    require_s3,
    volume_grant,
)
from slipway.embedded_aws.hosting.fleets.connections import (
    ContainerConnections,
    ContainerUnreachableError,
)
from slipway.embedded_aws.hosting.fleets.machine import Machine
from slipway.embedded_aws.hosting.fleets.model_download import ModelDataError
from slipway.embedded_aws.hosting.fleets.variant import (
    REASON_CHARACTERS,
    Variant,
    VariantStartError,
)
from slipway.embedded_aws.hosting.launch.container_spec import ContainerSpec, Launch, PortPool
from slipway.embedded_aws.hosting.launch.image_launcher import ImageLauncher
from slipway.embedded_aws.hosting.launch.program_launcher import ProgramLauncher
from slipway.embedded_aws.hosting.resources.model_source import ModelSource
from slipway.embedded_aws.hosting.resources.models import primary_container
from slipway.embedded_aws.hosting.telemetry.capture import CaptureWriter
from slipway.embedded_aws.hosting.telemetry.metrics import Source
from slipway.embedded_aws.iam.s3_access import RoleAccess
from slipway.embedded_aws.processes.logs import LogShipper, LogStream
from slipway.embedded_aws.processes.process import SupervisedProcess

logger = logging.getLogger(__name__)

# https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html: a container
# has 8 minutes to pass the health check and 30 seconds from SIGTERM to SIGKILL.
_DEFAULT_HEALTH_CHECK_SECONDS = 480
# The API names no default; its maximum is the most patient choice.
_DEFAULT_DOWNLOAD_SECONDS = 3600
_STOP_GRACE_SECONDS = 30.0
_FIRST_RESTART_SECONDS, _LAST_RESTART_SECONDS = 1.0, 30.0
_FIRST_PING_SECONDS, _LAST_PING_SECONDS = 0.02, 0.5


class AdapterError(Exception):
    """A container does not load an adapter; the message says why."""


@dataclass
class HostingContext:
    """The objects that all running variants share.

    Attributes:
        directory: holds model directories, homes and logs.
        time_scale: factor on every configured timeout and wait; tests shorten them.
        clock: the account's time. The waits of updates pass on it.
        without_capacity: the instance types that AWS has no capacity of.
    """

    clients: LoopbackClients
    directory: Path
    launcher: ProgramLauncher | ImageLauncher
    time_scale: float
    clock: AccountClock
    without_capacity: Collection[str]
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
        model: the CreateModel request of its model.
        volume_key: KmsKeyId of the endpoint configuration; None without one.
        component_name: the inference component of which this is a copy; None for a variant.
        machine: the instance of a copy; None for a variant.
        keeps_model: whether that instance keeps the model data for its next copy.

    Attributes:
        memory_bytes: main memory of a serverless container; None for an instance.
        attached: what the role has in the account: an interface and a grant.
        home: the directory that stands for the instance's disk.
        source: instance and container, as metrics name them.
        connections: connections to the container; valid once `start` returned.
    """

    memory_bytes: int | None = None

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
        machine: Machine | None = None,
        keeps_model: bool = False,
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
        self.role = model.get("ExecutionRoleArn")
        self._container = primary_container(model)
        self._image: str = self._container["Image"]
        self.images = (self._image,)
        # In the form of an EC2 instance id, which names the stream in SageMaker too.
        instance_id = f"i-{secrets.token_hex(9)[:17]}"
        self.machine, self._keeps_model = machine, keeps_model
        named = instance_id if machine is None else machine.id
        self.source = Source(named, container_id=secrets.token_hex(32))
        self.home = context.directory / "instances" / instance_id
        self._volume_key = volume_key
        # Everything that `stop` gives back: log, port, network interface, grant, directory.
        self._held = contextlib.ExitStack()
        self.attached = contextlib.ExitStack()
        self._process: SupervisedProcess | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._keeper: threading.Thread | None = None
        self._healthy = threading.Event()
        self._in_flight = self._most_in_flight = 0
        self._idle = threading.Condition()
        self._adapters = set[str]()
        self._adapters_lock = threading.Lock()
        self._log: LogStream
        self.connections: ContainerConnections

    @property
    def ancestor_id(self) -> int | None:
        """Returns the process whose descendants are the container's; None if none is known."""
        return None if self._process is None else self._process.ancestor_id

    def start(self) -> None:
        """Downloads the model, starts the program and waits until /ping answers 200.

        After a `VariantStartError` the caller must call `stop`, which leaves nothing running.
        """
        try:
            declared = self._container.get("Environment", {})
            launch = self._context.launcher.find(self._image, declared)
            model_directory = self.home / "model"
            model_directory.mkdir(parents=True)
            self._held.callback(self._remove_home, model_directory)
            self._prepare_instance(model_directory)
        except (CannotLaunchError, AttachmentError) as error:
            raise VariantStartError(str(error)) from error
        except ModelDataError as error:
            raise VariantStartError(f"{self._named}: {error}") from error
        port = self._context.ports.take()
        self._held.callback(self._context.ports.give_back, port)
        self.connections = ContainerConnections(port)
        self._log = self._context.logs.open(
            region=self._region,
            group=self.log_group,
            stream=f"{self.name}/{self.home.name}",
            file=self._context.directory / "logs" / f"{self.name}-{self.home.name}.log",
        )
        self._held.callback(self._context.logs.release, self._log)
        spec = ContainerSpec(
            name=f"slipway-{self.home.name}",
            declared=declared,
            region=self._region,
            port=port,
            model_directory=model_directory,
            home=self.home,
            is_isolated=self._model.get("EnableNetworkIsolation", False),
        )
        limit_seconds = self.declared.get(
            "ContainerStartupHealthCheckTimeoutInSeconds", _DEFAULT_HEALTH_CHECK_SECONDS
        )
        self._await_health(self._launch(launch, spec), limit_seconds)
        self._keeper = threading.Thread(
            target=self._keep_running, args=(launch, spec), name="keeper", daemon=True
        )
        self._keeper.start()

    @property
    def is_healthy(self) -> bool:
        """Returns whether the process passed its health check and runs."""
        return self._healthy.is_set()

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def take_most_in_flight(self) -> int:
        """Returns the most requests at a time since the last call."""
        with self._idle:
            most, self._most_in_flight = self._most_in_flight, self._in_flight
        return most

    def wake(self) -> None:
        """Does nothing: it is started."""

    def own_metrics(self) -> dict[str, float]:
        """Returns the metrics of a request that a serverless variant has alone: none."""
        return {}

    def enter(self) -> None:
        with self._idle:
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)

    def leave(self) -> None:
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()

    def drain(self, timeout_seconds: float) -> None:
        with self._idle:
            self._idle.wait_for(lambda: self._in_flight == 0, timeout_seconds)

    def load_adapter(self, identifier: str, url: str) -> None:
        """Downloads an adapter and registers it with the server, unless it is loaded.

        Raises `AdapterError` if the archive or the server refuses it.
        """
        directory = self.home / "adapters" / identifier
        with self._adapters_lock:
            if identifier in self._adapters:
                return
            if isinstance(self._context.launcher, ImageLauncher):
                raise AdapterError("The embedded AWS loads no adapters with --containers.")
            source = ModelSource.of({"ModelDataUrl": url})
            try:
                if source is not None and not directory.exists():
                    directory.mkdir(parents=True)
                    self._download(source, directory)
                query = urlencode({"name": identifier, "src": str(directory)})
                status, answer = self.connections.manage("POST", f"/adapters?{query}")
                if status != HTTPStatus.OK:
                    raise AdapterError(f"The server did not load the adapter: {status} {answer}")
            except (ModelDataError, AdapterError, ContainerUnreachableError) as error:
                model_download.remove(directory)
                raise AdapterError(str(error)) from error
            self._adapters.add(identifier)

    def unload_adapter(self, identifier: str) -> None:
        with self._adapters_lock:
            if identifier in self._adapters:
                self._adapters.remove(identifier)
                with contextlib.suppress(ContainerUnreachableError):
                    self.connections.manage("DELETE", f"/adapters/{quote(identifier)}")
            model_download.remove(self.home / "adapters" / identifier)

    def move(self, machine: Machine) -> None:
        """Puts a copy on another instance, without a restart."""
        self.machine, self.source = machine, self.source._replace(instance_id=machine.id)

    def request_stop(self) -> None:
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
        self._held.close()
        self.attached.close()

    @property
    def _named(self) -> str:
        return self._subject[0].upper() + self._subject[1:]

    def _prepare_instance(self, model_directory: Path) -> None:
        clients, network = self._context.clients, self._model.get("VpcConfig")
        if self._volume_key is not None:
            kms = clients.client("kms", self._region)
            self.attached.enter_context(volume_grant(kms, self._volume_key, self.role))
        if network is not None:
            ec2 = clients.client("ec2", self._region)
            description = f"{self.log_group} {self.name}"
            self.attached.enter_context(network_interface(ec2, network, self.role, description))
        source = ModelSource.of(self._container)
        if source is None:
            return
        if network is not None:
            require_s3(ec2, network, source.uri)
        self._download(source, model_directory)

    def _download(self, source: ModelSource, directory: Path) -> None:
        seconds = self.declared.get("ModelDataDownloadTimeoutInSeconds", _DEFAULT_DOWNLOAD_SECONDS)

        def download() -> None:
            model_download.download(
                source,
                RoleAccess(self._context.clients.client("s3", self._region), self.role),
                directory,
                timeout_seconds=seconds * self._context.time_scale,
            )

        if self.machine is None or not self._keeps_model:
            download()
        else:
            kept = self._context.directory / "kept"
            self.machine.fill(source.uri, directory, kept, download)

    def _remove_home(self, model_directory: Path) -> None:
        model_download.remove(model_directory)
        model_download.remove(self.home / "adapters")
        shutil.rmtree(self.home, ignore_errors=True)

    def _launch(self, launch: Launch, spec: ContainerSpec) -> SupervisedProcess:
        with self._lock:
            if self._stopping.is_set():
                raise VariantStartError(f"{self._named} was stopped.")
            grace_seconds = _STOP_GRACE_SECONDS * self._context.time_scale
            self._process = launch(spec, self._log.write, grace_seconds)
            return self._process

    def _await_health(self, process: SupervisedProcess, limit_seconds: float) -> None:
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

    def _ping_reason(self, what: str, process: SupervisedProcess) -> str:
        reason = (
            f"The primary container for {self._subject} did not pass the ping "
            f"health check. Please check CloudWatch logs for this endpoint. {what}"
        )
        lines = [line for line in process.last_lines if line]
        if not lines:
            return f"{reason}; it wrote nothing."
        reason += "; its last lines: "
        room = REASON_CHARACTERS - len(reason)
        kept = " | ".join(lines)
        return reason + (kept if len(kept) <= room else "..." + kept[3 - room :])

    def _keep_running(self, launch: Launch, spec: ContainerSpec) -> None:
        """Starts the program again when it ends by itself, as SageMaker restarts a container."""
        pause = _FIRST_RESTART_SECONDS
        while True:
            process = self._process
            if process is None:
                return
            process.exited.wait()
            self._healthy.clear()
            self._adapters.clear()
            self.connections.drop_idle()
            if self._stopping.is_set():
                return
            line = f"The container exited with status {process.exit_status}; it is restarted."
            logger.warning("%s %s: %s", self.log_group, self.name, line)
            self._log.write(line)
            if self._stopping.wait(pause * self._context.time_scale):
                return
            pause = min(pause * 2, _LAST_RESTART_SECONDS)
            # A program that ends again is restarted again, however long it takes to answer.
            with contextlib.suppress(VariantStartError):
                self._await_health(self._launch(launch, spec), math.inf)
