"""Puts SageMaker's hosting together, and maps the control plane's operations to their objects."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from slipway.embedded_aws.api import VALIDATION, Operation, ServiceApi
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.clock import AccountClock
from slipway.embedded_aws.containers.engine import Engine
from slipway.embedded_aws.hosting.asynchronous.queue import AsyncQueues
from slipway.embedded_aws.hosting.components.sampler import ComponentSampler
from slipway.embedded_aws.hosting.components.service import Components
from slipway.embedded_aws.hosting.endpoints.service import Endpoints
from slipway.embedded_aws.hosting.families.program import CannotLaunchError, ContainerProgram
from slipway.embedded_aws.hosting.fleets import model_download
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.machine_metrics import MachineSampler
from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext
from slipway.embedded_aws.hosting.launch.image_launcher import ImageLauncher
from slipway.embedded_aws.hosting.launch.program_launcher import ProgramLauncher
from slipway.embedded_aws.hosting.resources.endpoint_configs import EndpointConfigs
from slipway.embedded_aws.hosting.resources.models import Models
from slipway.embedded_aws.hosting.resources.records import Records
from slipway.embedded_aws.hosting.resources.tags import Tags
from slipway.embedded_aws.hosting.telemetry.metrics import MetricPublisher
from slipway.embedded_aws.periodic import Periodic
from slipway.embedded_aws.quotas import EndpointQuotas
from slipway.embedded_aws.reported_refusals import ReportedRefusal

_IDLE_INTERVAL_SECONDS = 5.0


class Hosting:
    """SageMaker hosting.

    Args:
        directory: holds model directories and logs; only this object writes there.
        project: has the programs that configs name; None: there is none.
        beside: SageMaker's operations that other objects handle and the same API answers.
    """

    def __init__(
        self,
        clients: LoopbackClients,
        directory: Path,
        *,
        programs: Mapping[str, ContainerProgram],
        tags: Tags,
        quotas: EndpointQuotas,
        clock: AccountClock,
        beside: Mapping[str, Operation],
        engine: Engine | None,
        time_scale: float,
        refused: Collection[ReportedRefusal],
        without_capacity: Collection[str],
        project: Path | None,
    ) -> None:
        launcher: ProgramLauncher | ImageLauncher
        if engine is None:
            launcher = ProgramLauncher(programs, clients.connection, project)
        else:
            launcher = ImageLauncher(engine, programs, directory)
            launcher.remove_left_containers()
        # Left by a killed server: nothing refers to it any more. Model directories are read-only,
        # so only root could remove them as they are.
        for home in (directory / "instances").glob("*"):
            model_download.remove(home / "model")
        for left in ("instances", "logs"):
            shutil.rmtree(directory / left, ignore_errors=True)
        self.clock = clock
        self._launcher = launcher
        self._context = context = HostingContext(
            clients, directory, launcher, time_scale, clock, without_capacity
        )
        self.captures = context.captures
        self.metrics = MetricPublisher(clock=clock)
        self.queues = AsyncQueues(clients, self.metrics, clock, time_scale)
        models = Models(clients, tags)
        configs = EndpointConfigs(models, tags, clients, refused)
        records: Records[Endpoint] = Records(
            "Endpoint", noun="endpoint", arn_type="endpoint", tags=tags
        )
        self.components = components = Components(context, models, records, tags, quotas, refused)
        self.endpoints = endpoints = Endpoints(
            context, models, configs, records, components, self.queues, quotas
        )
        self._component_sampler = ComponentSampler(
            components.records, records, self.metrics, clock, time_scale=time_scale
        )
        self._idle = Periodic(
            endpoints.stop_idle, _IDLE_INTERVAL_SECONDS * time_scale, "serverless-idle"
        )
        self._machines = MachineSampler(records.all, self.metrics, time_scale=time_scale)
        operations: Mapping[str, Operation] = {
            "CreateModel": models.create,
            "DescribeModel": models.describe,
            "ListModels": models.list,
            "DeleteModel": models.delete,
            "CreateEndpointConfig": configs.create,
            "DescribeEndpointConfig": configs.describe,
            "ListEndpointConfigs": configs.list,
            "DeleteEndpointConfig": configs.delete,
            "CreateEndpoint": endpoints.create,
            "DescribeEndpoint": endpoints.describe,
            "ListEndpoints": records.list,
            "UpdateEndpoint": endpoints.update,
            "UpdateEndpointWeightsAndCapacities": endpoints.update_weights,
            "DeleteEndpoint": endpoints.delete,
            "CreateInferenceComponent": components.create,
            "DescribeInferenceComponent": components.records.describe,
            "ListInferenceComponents": components.records.list,
            "UpdateInferenceComponent": components.update,
            "UpdateInferenceComponentRuntimeConfig": components.update_runtime,
            "DeleteInferenceComponent": components.delete,
            "AddTags": tags.add_tags,
            "ListTags": tags.list_tags,
            "DeleteTags": tags.delete_tags,
            **beside,
        }
        self.api = ServiceApi("sagemaker", operations, validation_code=VALIDATION)

    def summaries(self) -> list[dict[str, str]]:
        return [
            {"region": endpoint.region, "name": endpoint.name, "status": endpoint.status}
            for endpoint in self.endpoints.records.all()
        ]

    def why_not_served(self, image: str, backends: Sequence[str]) -> str | None:
        """Returns why no endpoint can serve an image with Triton's back ends; None if one can."""
        try:
            self._launcher.check(image, backends)
        except CannotLaunchError as error:
            return str(error)
        return None

    def publish_metrics(self) -> None:
        self.queues.sample()
        self._component_sampler.sample()
        self.endpoints.stop_idle()
        self.metrics.publish()

    def close(self) -> None:
        self._idle.close()
        self._machines.close()
        self.queues.close()
        self._component_sampler.close()
        self.components.close()
        self.endpoints.close()
        self._context.captures.close()
        self._context.logs.close()
        self.metrics.close()
