"""An adapter component: LoRA weights that the copies of another component, its base, load.

It has no copies and reserves nothing. A copy of the base gets the adapter when the adapter is
created, or else before the first request that names the adapter. Sources, read 2026-11-29:

- https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-adapt.html
- The server's adapter API and its header X-Amzn-SageMaker-Adapter-Identifier:
  https://github.com/deepjavalibrary/djl-serving, serving/docs/adapters.md and adapters_api.md

AWS documents neither which metrics a request to an adapter has, nor what an update does meanwhile.
Here the metrics of the request name the adapter, and an update loads the new files before it
unloads the old ones.
"""

from dataclasses import dataclass, field
from typing import Any

from slipway.embedded_aws.hosting.components.component import DELETING, Component
from slipway.embedded_aws.hosting.fleets.adapter_files import AdapterFiles
from slipway.embedded_aws.hosting.fleets.placement import Size


@dataclass(kw_only=True)
class Adapter(Component):
    """One adapter component; `files` are the version that its requests use."""

    base: Component
    files: AdapterFiles = field(init=False)
    versions: int = 0

    def __post_init__(self) -> None:
        self.files = self.next_files(self.specification["Container"]["ArtifactUrl"])

    def next_files(self, url: str) -> AdapterFiles:
        """Returns the next version, which no copy has yet."""
        self.versions += 1
        suffix = f"-{self.versions}" if self.versions > 1 else ""
        return AdapterFiles(f"{self.name}{suffix}", url)

    def copy_sizes(self) -> list[Size]:
        """Returns nothing: the base's copies reserve the resources."""
        return []

    def enter_files(self) -> AdapterFiles | None:
        """Counts a request in; returns None if the adapter is being deleted, or has failed."""
        with self.lock:
            if self.progress == DELETING or self.is_failed:
                return None
            self.files.enter()
            return self.files

    def describe(self) -> dict[str, Any]:
        """Returns DescribeInferenceComponent's answer, which has no copies."""
        described = super().describe()
        described.pop("RuntimeConfig")
        return {**described, "Specification": self.specification}
