"""The embedded AWS: its services, and the port they share."""

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from slipway.embedded_aws.builds.service import Builds
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import MINUTE_SECONDS, AccountClock
from slipway.embedded_aws.cloudformation.service import CloudFormation
from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.hosting.families import programs as slipways_programs
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from slipway.embedded_aws.hosting.invocations.api import RESPONSE_TIMEOUT_SECONDS, InvocationApi
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.hosting.service import Hosting
from slipway.embedded_aws.iam.simulation import IamApi
from slipway.embedded_aws.identity import MINUTE_PATH, SERVABLE_PATH, STATUS_PATH
from slipway.embedded_aws.image_layers import EcrApi
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.monitoring.api import cloudwatch_application
from slipway.embedded_aws.monitoring.evaluator import AlarmEvaluator
from slipway.embedded_aws.monitoring.notifications import Notifier
from slipway.embedded_aws.monitoring.states import AlarmStates
from slipway.embedded_aws.moto_applications import moto_application
from slipway.embedded_aws.objects import ObjectFront
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.embedded_aws.reported_refusals import ReportedRefusal
from slipway.embedded_aws.scaling.service import Scaling
from slipway.embedded_aws.training.service import Training


class EmbeddedAws:
    """All services behind one port.

    Args:
        port: loopback port; 0 lets the operating system choose.
        secret_access_key: signs the requests that are answered.
        directory: files and logs of endpoints, training jobs and builds are written here.
        programs: maps an image repository to the program that stands for it; None for Slipway's.
        engine: runs endpoints in their images; None runs them as processes.
        time_scale: factor on every timeout and wait of endpoints, jobs and builds; tests shorten
            them.
        response_timeout_seconds: longest time until a container answers; tests shorten it.
        clock: the account's time, for metrics, alarms, queues, scheduled actions and the waits of
            updates; None for the machine's time until minutes are passed over.
        refused: refusals of public reports that AWS's documents contradict.
        without_capacity: the instance types that AWS has no capacity of.
        project: has the programs that configs name; None: there is none.
        recorded: patterns of further resource types, which are recorded without effect.

    Use as a context manager, or call `start` and `stop`. Raises OSError if the port is taken.
    """

    def __init__(
        self,
        *,
        port: int,
        secret_access_key: str,
        directory: Path,
        programs: Mapping[str, ContainerProgram] | None = None,
        engine: Engine | None = None,
        time_scale: float = 1.0,
        response_timeout_seconds: float = RESPONSE_TIMEOUT_SECONDS,
        clock: AccountClock | None = None,
        refused: Collection[ReportedRefusal] = (),
        without_capacity: Collection[str] = (),
        project: Path | None = None,
        recorded: Collection[str] = (),
    ) -> None:
        self._clock = clock = clock or AccountClock()
        programs = slipways_programs() if programs is None else programs
        self._listener = Listener(port=port, secret_access_key=secret_access_key, clock=clock)
        self.port = self._listener.port
        self.connection = self._listener.connection
        self._clients = LoopbackClients(self.connection)
        self._passing = threading.Lock()
        tags, quotas = Tags(), EndpointQuotas()
        self._training = Training(
            self._clients, directory, tags, programs=programs, time_scale=time_scale
        )
        self._hosting = Hosting(
            self._clients,
            directory,
            programs=programs,
            engine=engine,
            time_scale=time_scale,
            tags=tags,
            quotas=quotas,
            beside=self._training.operations,
            clock=clock,
            refused=refused,
            without_capacity=without_capacity,
            project=project,
        )
        self._builds = Builds(self._clients, directory, time_scale=time_scale)
        self._cloudformation = CloudFormation(clients=self._clients, recorded=recorded)
        self._scaling = Scaling(self._clients, clock)
        states = AlarmStates(Notifier(self._clients), clock)
        self._alarms = AlarmEvaluator(
            states,
            clock=clock,
            refresh=self._hosting.publish_metrics,
            scale=self._scaling.carry_out,
        )
        self._listener.mount("s3", ObjectFront(self._listener.moto))
        self._listener.mount("codebuild", self._builds.in_front_of(self._listener.moto))
        self._listener.mount("cloudformation", self._cloudformation.api)
        self._listener.mount("ecr", moto_application("ecr", EcrApi, clients=self._clients))
        self._listener.mount("iam", moto_application("iam", IamApi))
        self._listener.mount(
            "monitoring",
            cloudwatch_application(states, self._alarms.put_again, self._hosting.publish_metrics),
        )
        self._listener.mount("sagemaker", self._hosting.api)
        self._listener.mount("servicequotas", quotas.api)
        self._listener.mount_invocations(
            InvocationApi(self._hosting, timeout_seconds=response_timeout_seconds)
        )
        self._listener.mount_own(
            {
                ("GET", STATUS_PATH): lambda _: self._status(),
                ("GET", SERVABLE_PATH): self._servable,
                ("POST", MINUTE_PATH): lambda _: self.pass_minute(),
            }
        )

    def start(self) -> None:
        self._listener.start()
        self._alarms.start()
        self._scaling.start()

    def stop(self) -> None:
        """Stops every deployment and every serving process, then the server."""
        self._scaling.close()
        self._alarms.close()
        self._cloudformation.close()
        # Before the listener, because the last log lines go through it.
        self._builds.close()
        self._training.close()
        self._hosting.close()
        self._listener.stop()
        self._clients.close()

    def pass_minute(self) -> dict[str, Any]:
        """Moves the account's clock to the end of its minute, and does everything that is due.

        Values are measured before the minute ends. Scheduled actions and alarms follow, and
        policies of raised alarms. Instances and copies that they start or stop are awaited, for a
        minute of the machine's time at most.
        """
        with self._passing:
            # The evaluation of the present minute would otherwise take its place.
            self._clock.end_last_minute()
            self._alarms.evaluate_due()
            self._hosting.publish_metrics()
            self._clock.pass_minute()
            self._scaling.run_due()
            self._alarms.evaluate_due()
            self._scaling.settle(MINUTE_SECONDS)
            return {"now_seconds": self._clock(), "ahead_seconds": self._clock.ahead_seconds}

    def __enter__(self) -> "EmbeddedAws":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _servable(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        reason = self._hosting.why_not_served(query["image"][0], query.get("backend", []))
        return {"reason": reason}

    def _status(self) -> dict[str, Any]:
        endpoints = self._hosting.summaries()
        return {"endpoints": endpoints, "ahead_seconds": self._clock.ahead_seconds}
