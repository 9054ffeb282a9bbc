"""The metrics of CloudWatch that alarms watch, and those that Slipway's containers serve.

A container's own metrics come from its server, which is made here without a model. CloudWatch's
metrics come from the table of alarms.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.serving.metrics import Metrics
from containers.serving.prometheus import PrometheusMetrics
from containers.serving.server import ModelServer
from containers.serving.service import AnyPredictor
from containers.serving.settings import ServingSettings
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings
from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.alarms_of_modes import ASYNC_REQUESTS, QUEUE, SERVERLESS_REQUESTS, watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import ALARM_KINDS, Alarms
from tools.reference.tables import meaning, table

Row = tuple[str, str, str, str, tuple[float, ...]]
"""Name, type with its labels, unit, help and buckets of a metric."""


class ServedMetrics(PrometheusMetrics):
    """The metrics of a server, also those whose labels have no values yet."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: dict[str, tuple[str, ...]] = {}

    def labelled_counter(
        self, name: str, description: str, labels: tuple[str, ...]
    ) -> Callable[..., None]:
        """Notes the labels, which a registry tells only with their values."""
        self._labels[name] = labels
        return super().labelled_counter(name, description, labels)

    def rows(self) -> Iterator[Row]:
        for metric in self._registry.collect():
            if not metric.name.startswith("slipway_"):
                continue
            labels = ", ".join(f"`{label}`" for label in self._labels.get(metric.name, ()))
            kind = f"{metric.type} by {labels}" if labels else metric.type
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            last = metric.name.rpartition("_")[2]
            # A metric that has a unit has it in its name.
            unit = last if last in ("seconds", "bytes", "tokens", "rows") else "count"
            bounds = (float(sample.labels.get("le", "inf")) for sample in metric.samples)
            buckets = tuple(bound for bound in bounds if bound < math.inf)
            yield name, kind, unit, metric.documentation, buckets


def blocks() -> dict[str, str]:
    predictors: dict[str, Callable[[Metrics], AnyPredictor]] = {
        "TensorRT": lambda found: TextGenerationPredictor(GenerationSettings(), metrics=found),
        "Neuron": lambda found: NeuronPredictor(NeuronSettings(), metrics=found),
    }
    served = {name: served_metrics(make) for name, make in predictors.items()}
    return {
        "alarms": _alarms(),
        **_watched_metrics(),
        "served metrics": _served_table(served),
        "buckets": _buckets(row for rows in served.values() for row in rows),
    }


def served_metrics(predictor: Callable[[Metrics], AnyPredictor]) -> list[Row]:
    metrics = ServedMetrics()
    ModelServer(predictor(metrics), ServingSettings(), metrics=metrics)
    return list(metrics.rows())


def _alarms() -> str:
    rows = [
        (
            kind.watch.construct_id,
            f"`{kind.field}`",
            f"`{name}`",
            meaning(Alarms.model_fields[kind.field].description),
        )
        for name, kind in ALARM_KINDS.items()
    ]
    capacity = meaning(Alarms.model_fields["at_max_capacity"].description)
    watch = CAPACITY_WATCHES["realtime"]
    rows.append((watch.construct_id, "none: `at_max_capacity`", "none", capacity))
    return table("alarm | threshold in `alarms` | in `rollback_alarms` | meaning", rows)


def _watched_metrics() -> dict[str, str]:
    by_mode = (
        watch_of(kind, mode)
        for mode in ("realtime", "async", "serverless")
        for kind in ALARM_KINDS.values()
    )
    watches = [watch for watch in (*by_mode, *CAPACITY_WATCHES.values()) if watch is not None]
    found = {}
    for group in (REQUESTS, MACHINES, ASYNC_REQUESTS, QUEUE, SERVERLESS_REQUESTS):
        rows = [
            (f"`{each.name}`", watch.construct_id, each.unit, each.statistic, each.meaning)
            for watch in watches
            if watch.group == group
            for each in watch.metrics
        ]
        # Metrics of machines are the same in both modes.
        shown = table("metric | alarm | unit | statistic | meaning", dict.fromkeys(rows))
        found[group.title.lower()] = (
            f"Namespace `{group.namespace}`. What an alarm makes of missing data "
            f"(`TreatMissingData`): `{group.missing_data}`.\n\n{shown}"
        )
    return found


def _served_table(served: Mapping[str, Sequence[Row]]) -> str:
    owners = dict[Row, list[str]]()
    for container, rows in served.items():
        for row in rows:
            owners.setdefault(row, []).append(container)
    return table(
        "metric | type | unit | container | meaning",
        (
            (f"`{name}`", kind, unit, who[0] if len(who) == 1 else "both", about)
            for (name, kind, unit, about, _), who in owners.items()
        ),
    )


def _buckets(rows: Iterable[Row]) -> str:
    """Returns an item for each set of buckets, with the histograms that have it."""
    users = dict[tuple[float, ...], dict[str, None]]()
    for name, _, _, _, buckets in rows:
        if buckets:
            users.setdefault(buckets, {})[f"`{name}`"] = None
    return "\n".join(
        f"- {', '.join(names)}: `{', '.join(f'{bound:g}' for bound in buckets)}`"
        for buckets, names in users.items()
    )
