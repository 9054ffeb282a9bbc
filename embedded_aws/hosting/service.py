"""SageMaker's control plane for hosting: maps operations to the objects that handle them."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from embedded_aws.api import Operation, ServiceApi
from embedded_aws.clients import LoopbackClients
from embedded_aws.clock import AccountClock
from embedded_aws.containers.engine import Engine
from embedded_aws.hosting import model_data
from embedded_aws.hosting.asynchronous.backlogs import BacklogSampler
from embedded_aws.hosting.asynchronous.queue import AsyncQueue
from embedded_aws.hosting.components.component import Component
from embedded_aws.hosting.components.sampler import ComponentSampler
from embedded_aws.hosting.components.service import Components
from embedded_aws.hosting.endpoint_configs import EndpointConfigs
from embedded_aws.hosting.endpoints import Endpoints
from embedded_aws.hosting.families import (
    PROGRAMS,
)
from embedded_aws.hosting.families.program import ContainerProgram
from embedded_aws.hosting.fleets import Endpoint
from embedded_aws.hosting.image_launcher import ImageLauncher
from embedded_aws.hosting.launch import CannotLaunchError, Launcher
from embedded_aws.hosting.machines import MachineSampler
from embedded_aws.hosting.metrics import MetricPublisher
from embedded_aws.hosting.models import Models
from embedded_aws.hosting.program_launcher import ProgramLauncher
from embedded_aws.hosting.records import VALIDATION
from embedded_aws.hosting.tags import Tags
from embedded_aws.hosting.variants import HostingContext
from embedded_aws.identity import ACCOUNT_ID
from embedded_aws.network_rules import follow_network_rules
from embedded_aws.quotas import EndpointQuotas
from embedded_aws.scaling_rules import follow_scaling_rules
from embedded_aws.stricter import StricterRule


class Hosting:
    """SageMaker hosting.

    Args:
        clients: calls S3, IAM, EC2, CloudWatch and CloudWatch Logs.
        directory: holds model directories and logs; only this object writes there.
        programs: maps an image repository to the program that stands for it.
        engine: runs endpoints in their images; None runs them as processes.
        time_scale: factor on every timeout and wait that a caller configures; tests shorten them.
        tags: keeps the tags.
        quotas: limits the instances behind endpoints; None for those that nobody changed.
        beside: SageMaker's operations that other objects handle and the same API answers.
        clock: the account's time, which gives metrics their date; None for the machine's.
        stricter: refusals of public reports that AWS's documents contradict.
        without_capacity: the instance types that AWS has no capacity of.

    Attributes:
        api: the WSGI application of the control plane.
        metrics: records invocations.
        captures: writes captured requests and answers.
    """

    def __init__(
        self,
        clients: LoopbackClients,
        directory: Path,
        *,
        programs: Mapping[str, ContainerProgram] = PROGRAMS,
        engine: Engine | None = None,
        time_scale: float = 1.0,
        tags: Tags | None = None,
        quotas: EndpointQuotas | None = None,
        beside: Mapping[str, Operation] | None = None,
        clock: AccountClock | None = None,
        stricter: Collection[StricterRule] = (),
        without_capacity: Collection[str] = (),
    ) -> None:
        follow_scaling_rules()
        follow_network_rules()
        launcher: Launcher = ProgramLauncher(programs, clients.connection)
        if engine is not None:
            launcher = in_images = ImageLauncher(engine, programs, directory)
            in_images.remove_left_containers()
        # Left by a killed server: nothing refers to it any more. Model directories are read-only,
        # so only root could remove them as they are.
        for home in (directory / "instances").glob("*"):
            model_data.remove(home / "model")
        for left in ("instances", "logs"):
            shutil.rmtree(directory / left, ignore_errors=True)
        self._clock = clock = clock or AccountClock()
        self.metrics = MetricPublisher(clock=clock)
        self._launcher = launcher
        self._context = HostingContext(
            clients, directory, launcher, time_scale, clock, without_capacity
        )
        self.captures = self._context.captures
        tags = tags or Tags()
        models = Models(clients, tags)
        configs = EndpointConfigs(models.records, tags, clients, stricter)
        quotas = quotas or EndpointQuotas()
        self._endpoints = Endpoints(
            self._context,
            models.records,
            configs.records,
            tags,
            quotas,
            lambda endpoint: AsyncQueue(endpoint, clients, self.metrics, clock, time_scale),
            lambda endpoint: self._components.abandon(endpoint),
        )
        self._components = components = Components(
            self._context,
            models,
            self._endpoints.records,
            tags,
            quotas,
            self._endpoints.running,
            stricter,
        )
        self._component_sampler = ComponentSampler(
            components.records.all,
            self._endpoints.records.all,
            self.metrics,
            clock,
            time_scale=time_scale,
        )
        self._backlogs = BacklogSampler(self._endpoints.records.all, time_scale=time_scale)
        self._machines = MachineSampler(
            self._endpoints.records.all, self.metrics, time_scale=time_scale
        )
        operations: Mapping[str, Operation] = {
            "CreateModel": models.create,
            "DescribeModel": models.describe,
            "ListModels": models.list,
            "DeleteModel": models.delete,
            "CreateEndpointConfig": configs.create,
            "DescribeEndpointConfig": configs.describe,
            "ListEndpointConfigs": configs.list,
            "DeleteEndpointConfig": configs.delete,
            "CreateEndpoint": self._endpoints.create,
            "DescribeEndpoint": self._endpoints.describe,
            "ListEndpoints": self._endpoints.list,
            "UpdateEndpoint": self._endpoints.update,
            "UpdateEndpointWeightsAndCapacities": self._endpoints.update_weights,
            "DeleteEndpoint": self._endpoints.delete,
            "CreateInferenceComponent": components.create,
            "DescribeInferenceComponent": components.describe,
            "ListInferenceComponents": components.list,
            "UpdateInferenceComponent": components.update,
            "UpdateInferenceComponentRuntimeConfig": components.update_runtime,
            "DeleteInferenceComponent": components.delete,
            "AddTags": tags.add_tags,
            "ListTags": tags.list_tags,
            "DeleteTags": tags.delete_tags,
            **(beside or {}),
        }
        self.api = ServiceApi(
            "sagemaker", operations, account_id=ACCOUNT_ID, validation_code=VALIDATION
        )

    def find_endpoint(self, region: str, name: str) -> Endpoint | None:
        """Returns an endpoint, whatever its status, or None."""
        return self._endpoints.records.find(region, name)

    def find_component(self, region: str, name: str) -> Component | None:
        """Returns an inference component, whatever its status, or None."""
        return self._components.records.find(region, name)

    def summaries(self) -> list[dict[str, str]]:
        """Returns region, name and status of every endpoint, oldest first."""
        return [
            {"region": endpoint.region, "name": endpoint.name, "status": endpoint.status}
            for endpoint in self._endpoints.records.all()
        ]

    def why_not_served(self, image: str, backends: Sequence[str]) -> str | None:
        """Returns why no endpoint can serve an image with Triton's back ends; None if one can."""
        try:
            self._launcher.check(image, backends)
        except CannotLaunchError as error:
            return str(error)
        return None

    def now_seconds(self) -> float:
        """Returns the time on the clock, in seconds since the epoch."""
        return self._clock()

    def publish_metrics(self) -> None:
        """Measures backlogs and components, and publishes the values since the last call."""
        self._backlogs.sample()
        self._component_sampler.sample()
        self.metrics.publish()

    def close(self) -> None:
        """Stops every serving process and publishes the recorded metrics."""
        self._machines.close()
        self._backlogs.close()
        self._component_sampler.close()
        self._components.close()
        self._endpoints.close()
        self._context.captures.close()
        self._context.logs.close()
        self.metrics.close()
