"""The answers of AWS's Describe calls about one endpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_OWN_TAG = "slipway:environment"
INSTANCES = "sagemaker:variant:DesiredInstanceCount"
"""The dimension of a target that sets the number of a variant's instances."""

# Any: boto3's answers.
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Package:
    """The small files of a model's data, such as the settings of its server, by path.

    `unread` is why they were not read, as half a sentence; empty if they were.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    unread: str = ""


@dataclass(frozen=True)
class Described:
    """The answers of Describe calls about an endpoint, and about everything that belongs to it.

    The config is the live one. `component` is there where there is only one. Alarms watch the
    endpoint, or undo its updates. Models are by name, and packages by the address of the model
    data.
    """

    region: str
    endpoint: Raw
    config: Raw
    models: Mapping[str, Raw] = field(default_factory=dict)
    components: Sequence[str] = ()
    component: Raw | None = None
    targets: Sequence[Raw] = ()
    policies: Sequence[Raw] = ()
    actions: Sequence[Raw] = ()
    alarms: Sequence[Raw] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    log_group: Raw | None = None
    packages: Mapping[str, Package] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.endpoint["EndpointName"])

    @property
    def account(self) -> str:
        return str(self.endpoint["EndpointArn"]).split(":")[4]

    @property
    def component_target(self) -> Raw | None:
        names = [f"inference-component/{name}" for name in self.components[:1]]
        found = (target for target in self.targets if target["ResourceId"] in names)
        return None if self.component is None else next(found, None)

    def target_of(self, variant: str) -> Raw | None:
        """Returns the target that sets the number of a variant's instances; None without one."""
        place = (f"endpoint/{self.name}/variant/{variant}", INSTANCES)
        return next((each for each in self.targets if _scaled(each) == place), None)

    def policies_of(self, target: Raw) -> list[Raw]:
        return [each for each in self.policies if _scaled(each) == _scaled(target)]

    def actions_of(self, target: Raw) -> list[Raw]:
        return [each for each in self.actions if _scaled(each) == _scaled(target)]

    @property
    def environment(self) -> str | None:
        """Returns the environment whose stack made the endpoint; None if Slipway did not."""
        return self.tags.get(_OWN_TAG)

    @property
    def origin(self) -> str:
        return f"the endpoint {self.name}"


def _scaled(item: Raw) -> tuple[str, str]:
    return item["ResourceId"], item["ScalableDimension"]


def containers_of(model: Raw) -> list[Raw]:
    primary = model.get("PrimaryContainer")
    return [primary] if primary else list(model.get("Containers") or ())


def data_address(container: Raw) -> str | None:
    """Returns the address of a container's model data: a prefix or an archive; None without."""
    source = (container.get("ModelDataSource") or {}).get("S3DataSource") or {}
    address: str | None = source.get("S3Uri") or container.get("ModelDataUrl")
    return address or None
