"""A kept measurement of a model, and how it corrects predictions."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean
from typing import Final, Literal

from pydantic import Field

from slipway.config.sections.base import Section
from slipway.planning.plan import DeploymentPlan
from slipway.sizing.facts import Band, band_of, corrected_width
from slipway.sizing.latency import Server
from slipway.sizing.network import Network

CORRECTED: Final = "corrected by a measurement"


class LoadFigures(Section):
    """One load of one instance, as the median of the trials.

    `concurrency` is the mean number of requests under way, by Little's law. The least and the most
    requests a second are the interval of the median, which fewer than five trials do not have.
    """

    concurrency: float = Field(gt=0)
    batch: int = Field(default=1, ge=1)
    input_tokens: float | None = Field(default=None, gt=0)
    output_tokens: float | None = Field(default=None, gt=0)
    requests_per_second: float = Field(gt=0)
    least_requests_per_second: float | None = Field(default=None, gt=0)
    most_requests_per_second: float | None = Field(default=None, gt=0)
    average_milliseconds: float = Field(gt=0)
    deviation_milliseconds: float = Field(ge=0)
    p99_milliseconds: float | None = Field(default=None, gt=0)

    @property
    def tokens(self) -> float | None:
        return None if self.output_tokens is None else self.output_tokens * self.batch


class Measurement(Section):
    """The file model_configs/NAME.measured.json: the loads of one bench, and what it measured.

    `image` has no registry, because each region has its own. `settings` is a digest of the
    container's variables.
    """

    version: Literal[1] = 1
    measured_on: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    environment: str
    instance_type: str
    instance_count: int = Field(ge=1)
    container: str
    image: str
    artifact: str
    settings: str
    design: str
    trials: int = Field(ge=1)
    loads: tuple[LoadFigures, ...] = Field(min_length=1, strict=False)

    def render(self) -> str:
        """Returns the file's text; the same measurement gives the same bytes."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"

    @property
    def origin(self) -> str:
        return f"measured on {self.measured_on} on {self.instance_type} in {self.environment}"

    def differences(self, plan: DeploymentPlan) -> Iterator[str]:
        """Yields what a plan deploys and the endpoint that was measured did not, but the type."""
        for name, measured, planned in (
            ("another image was", self.image, image_name(plan.image.uri)),
            ("another artifact was", self.artifact, plan.artifact.digest),
            ("other variables were", self.settings, settings_digest(plan.container_environment)),
        ):
            if measured != planned:
                yield f"{name} measured ({measured}, now {planned})"


def image_name(uri: str) -> str:
    return uri.partition("/")[2]


def settings_digest(variables: Mapping[str, str]) -> str:
    """Digests a container's variables, without addresses, which differ between environments."""
    kept = sorted(each for each in variables.items() if not each[1].startswith("s3://"))
    return hashlib.sha256(repr(kept).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Correction:
    """How many times as long as predicted requests took, on one server.

    Factors are of ascending concurrencies of a copy. `spread` is half of the measurement's own
    interval, as a logarithm.
    """

    instance_type: str
    server: Server
    factors: tuple[tuple[float, float], ...]
    spread: float = 0.0

    @classmethod
    def of(
        cls, instance_type: str, server: Server, factors: Iterable[tuple[float, float]]
    ) -> "Correction":
        """Returns the correction with the geometric mean of the factors at each concurrency."""
        found: dict[float, list[float]] = {}
        for concurrency, factor in factors:
            found.setdefault(concurrency, []).append(factor)
        means = ((each, geometric_mean(found[each])) for each in sorted(found))
        return cls(instance_type, server, tuple(means))

    def at(self, concurrency: float) -> float:
        """Returns the factor, between two measured concurrencies by the logarithms of both."""
        for (low, one), (high, other) in pairwise(self.factors):
            if low <= concurrency <= high:
                share = math.log(concurrency / low) / math.log(high / low)
                return math.exp((1 - share) * math.log(one) + share * math.log(other))
        return self.factors[0 if concurrency <= self.factors[0][0] else -1][1]

    def covers(self, server: Server) -> bool:
        """Returns whether it helps: what errs alike is the GPU with the engine, not the model."""
        return (server.gpu, server.engine) == (self.server.gpu, self.server.engine)

    def band(self, network: Network, instance_type: str, server: Server, concurrency: int) -> Band:
        is_same = (instance_type, server) == (self.instance_type, self.server)
        before = math.log(band_of(network, server, concurrency).factor)
        width = min(before, corrected_width(network, is_same=is_same))
        return Band(math.exp(max(width, self.spread)), CORRECTED)
