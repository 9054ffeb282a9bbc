"""Finds the published layout's best use of the cores: workers, and threads of each.

A worker answers one request at a time. One worker with many threads therefore serves a lone client
best, unless the model is too small for them. Several clients are served best by more workers with
fewer threads each, or by one worker if memory is the limit. The published layout is measured in
both forms, each at its best number of clients. Together they are stronger than any single
deployment of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.baselines.stack import Layout
from benchmarks.tensorrt.design import System

CONCURRENCY = 4
"""Clients that the candidates are measured with: the most that the published case had."""


@dataclass(frozen=True)
class Server:
    system: System
    layout: Layout | None = None

    def __str__(self) -> str:
        if self.layout is None:
            return self.system.label
        return f"{self.system.label} ({self.layout.workers} x {self.layout.threads} threads)"


@dataclass(frozen=True)
class Measured:
    """Requests per second of a layout with a cache: of one client, and of `CONCURRENCY`."""

    layout: Layout
    alone: float
    together: float


@dataclass(frozen=True)
class Calibration:
    """The layouts that are measured, and the candidates, unless the user chose."""

    alone: Layout  # for one client
    together: Layout  # for several
    measured: tuple[Measured, ...] = ()

    def server(self, system: System, concurrency: int) -> Server:
        if not system.answers_in_order:
            return Server(system)
        return Server(system, self.alone if concurrency == 1 else self.together)


def layouts(core_count: int) -> list[Layout]:
    """Returns the layouts that use all cores: 1, 2, 4, ... workers with equal threads."""
    numbers = [2**power for power in range(core_count.bit_length()) if core_count % 2**power == 0]
    if core_count not in numbers:
        numbers.append(core_count)
    return [Layout(number, core_count // number) for number in numbers]


def given(workers: int, core_count: int) -> Calibration:
    layout = Layout(workers, max(1, core_count // workers))
    return Calibration(layout, layout)


def calibrate(core_count: int, throughput: Callable[[Layout, int], float]) -> Calibration:
    measured = tuple(
        Measured(layout, throughput(layout, 1), throughput(layout, CONCURRENCY))
        for layout in layouts(core_count)
    )
    return Calibration(
        alone=max(measured, key=lambda each: each.alone).layout,
        together=max(measured, key=lambda each: each.together).layout,
        measured=measured,
    )
