"""The metrics of the machines behind endpoints, measured from each variant's program.

SageMaker publishes them once a minute and instance, or as often as MetricsConfig says, as the
model's execution role: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html.
Here the program is measured every ten seconds, and no metric of a GPU is published because there is
none. This works on Linux only, since a program's usage is read from /proc.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.telemetry.metrics import (
    MACHINES_NAMESPACE,
    MetricOwner,
    MetricPublisher,
)
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.periodic import Periodic

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 10.0
_SHORTEST_INTERVAL_SECONDS = 0.1
_PROC = Path("/proc")


@dataclass(frozen=True)
class _Process:
    """A process in /proc: `cpu_seconds` since its start, `memory_bytes` resident."""

    parent: int
    cpu_seconds: float
    memory_bytes: int


class MachineSampler:
    """Measures every healthy variant, and records the metrics that its role may publish."""

    def __init__(
        self,
        endpoints: Callable[[], Iterable[Endpoint]],
        publisher: MetricPublisher,
        *,
        time_scale: float = 1.0,
    ) -> None:
        self._endpoints = endpoints
        self._publisher = publisher
        interval_seconds = max(_INTERVAL_SECONDS * time_scale, _SHORTEST_INTERVAL_SECONDS)
        # CPU seconds of each process below a variant's home, and the time of the measurement.
        self._before: dict[Path, tuple[float, dict[int, float]]] = {}
        self._reported: set[tuple[str, str]] = set()
        self._sampling: Periodic | None = None
        if not (_PROC / "self" / "stat").exists():
            logger.warning("This system has no /proc: metrics of machines are not published.")
            return
        self._sampling = Periodic(self._sample, interval_seconds, "machine-sampler")

    def close(self) -> None:
        if self._sampling is not None:
            self._sampling.close()

    def _sample(self) -> None:
        found = [
            (endpoint, fleet.metrics, variant)
            for endpoint in self._endpoints()
            for fleet in endpoint.fleets()
            for variant in fleet.containers
            if variant.is_healthy and self._may_publish(endpoint, variant)
        ]
        homes = {variant.home for *_, variant in found}
        self._before = {home: value for home, value in self._before.items() if home in homes}
        processes = _processes() if found else {}
        for endpoint, published, variant in found:
            owner = MetricOwner(endpoint.region, MACHINES_NAMESPACE, endpoint.name, variant.name)
            values = self._use(variant, processes)
            self._publisher.record_values(owner, values, published.machines_seconds)
            if published.is_enhanced:
                of_instance = owner._replace(source=variant.source)
                self._publisher.record_values(of_instance, values, published.machines_seconds)

    def _may_publish(self, endpoint: Endpoint, variant: RunningVariant) -> bool:
        role = variant.role
        if role is not None and may_publish(role):
            return True
        # SageMaker gives no reason for missing metrics; this line in the log is the only one.
        subject = (endpoint.name, variant.name)
        if subject not in self._reported:
            self._reported.add(subject)
            logger.warning(
                "%s, %s: no metrics in %s, because %s may not cloudwatch:PutMetricData there.",
                endpoint.name,
                variant.name,
                MACHINES_NAMESPACE,
                role or "a model without a role",
            )
        return False

    def _use(self, variant: RunningVariant, processes: dict[int, _Process]) -> dict[str, float]:
        now = time.monotonic()
        ancestor = variant.ancestor_id
        disk = shutil.disk_usage(_existing(variant.home)).total
        values = {"DiskUtilization": 100.0 * _size_bytes(variant.home) / disk}
        if ancestor is None:
            return values
        own = _descendants(ancestor, processes)
        memory_bytes = sum(process.memory_bytes for process in own.values())
        of_bytes = variant.memory_bytes or _memory_bytes()
        values["MemoryUtilization"] = 100.0 * memory_bytes / of_bytes
        if variant.memory_bytes is not None:
            return {"MemoryUtilization": values["MemoryUtilization"]}  # AWS publishes no more
        cpu = {number: process.cpu_seconds for number, process in own.items()}
        before = self._before.get(variant.home)
        self._before[variant.home] = (now, cpu)
        if before is not None and now > before[0]:
            seconds = sum(used - before[1].get(number, 0.0) for number, used in cpu.items())
            # One whole core is 100; four cores reach 400, as in SageMaker.
            values["CPUUtilization"] = 100.0 * max(seconds, 0.0) / (now - before[0])
        return values


def may_publish(role_arn: str) -> bool:
    # PutMetricData has no resources, so a statement about some does not apply. Its condition key:
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatch.html
    context = {"cloudwatch:namespace": MACHINES_NAMESPACE}
    return may(role_arn, "cloudwatch:PutMetricData", "*", context)


def _processes() -> dict[int, _Process]:
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    found = {}
    for directory in _PROC.iterdir():
        if not directory.name.isdecimal():
            continue
        try:
            line = (directory / "stat").read_text("utf-8", "replace")
        except OSError:  # the process ended meanwhile
            continue
        # The name, in parentheses, may have any characters. Fields: proc(5), from the third on.
        fields = line.rpartition(")")[2].split()
        found[int(directory.name)] = _Process(
            parent=int(fields[1]),
            cpu_seconds=(int(fields[11]) + int(fields[12])) / ticks,
            memory_bytes=int(fields[21]) * page,
        )
    return found


def _descendants(ancestor: int, processes: dict[int, _Process]) -> dict[int, _Process]:
    children: dict[int, list[int]] = {}
    for number, process in processes.items():
        children.setdefault(process.parent, []).append(number)
    found: dict[int, _Process] = {}
    waiting = list(children.get(ancestor, []))
    while waiting:
        number = waiting.pop()
        found[number] = processes[number]
        waiting += children.get(number, [])
    return found


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _size_bytes(directory: Path) -> int:
    """Returns the disk space below a directory; files that vanish meanwhile count as 0."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def _existing(directory: Path) -> Path:
    """Returns the directory, or its nearest existing parent: a variant may stop meanwhile."""
    return next(path for path in (directory, *directory.parents) if path.exists())
