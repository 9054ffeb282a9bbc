"""The metrics of CloudWatch that alarms watch, and those that Slipway's containers serve.

A container's own metrics come from its server, which is made here without a model. CloudWatch's
metrics come from the table of alarms.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.serving.metrics import Metrics, Record, ignore
from containers.serving.server import ModelServer
from containers.serving.service import AnyPredictor
from containers.serving.settings import ServingSettings
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings
from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.async_alarms import ASYNC_REQUESTS, QUEUE, watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import ALARM_KINDS, Alarms
from slipway.config.serverless_alarms import SERVERLESS_REQUESTS
from tools.reference.tables import meaning, table


@dataclass(frozen=True)
class ServedMetric:
    """A metric in Prometheus' format.

    Args:
        name: as `/metrics` has it.
        kind: counter, gauge or histogram.
        meaning: its line of help.
        labels: names of the labels.
        buckets: upper bounds of a histogram's buckets.
    """

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """The unit, which is in the name of a metric that has one."""
        words = self.name.removesuffix("_total").split("_")
        return words[-1] if words[-1] in ("seconds", "bytes", "tokens", "rows") else "count"


@dataclass
class RecordedMetrics(Metrics):
    """Notes each metric that a server makes, and keeps no values.

    Attributes:
        found: by their names.
    """

    found: dict[str, ServedMetric] = field(default_factory=dict)

    def counter(self, name: str, description: str) -> Record:
        """Notes a counter; Prometheus' client adds `_total` to its name."""
        self._add(ServedMetric(f"{name}_total", "counter", description))
        return ignore

    def labelled_counter(
        self, name: str, description: str, labels: tuple[str, ...]
    ) -> Callable[..., None]:
        """Notes a counter with labels."""
        self._add(ServedMetric(f"{name}_total", "counter", description, labels))
        return ignore

    def histogram(self, name: str, description: str, buckets: tuple[float, ...]) -> Record:
        """Notes a histogram."""
        self._add(ServedMetric(name, "histogram", description, buckets=buckets))
        return ignore

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:  # noqa: ARG002
        """Notes a gauge."""
        self._add(ServedMetric(name, "gauge", description))

    def _add(self, metric: ServedMetric) -> None:
        self.found[metric.name] = metric


def blocks() -> dict[str, str]:
    """Returns the blocks of the page by their names."""
    tensorrt, neuron = served_metrics("tensorrt"), served_metrics("neuron")
    return {
        "alarms": _alarms(),
        **_watched_metrics(),
        "served metrics": _served_table(tensorrt, neuron),
        "buckets": _buckets({**tensorrt, **neuron}),
    }


def served_metrics(container: str) -> dict[str, ServedMetric]:
    """Returns the metrics of a container by their names."""
    metrics = RecordedMetrics()
    make_server(container, metrics)
    return metrics.found


def make_server(container: str, metrics: Metrics) -> None:
    """Makes a container's server without a model, which makes its metrics."""
    predictor: AnyPredictor = (
        TextGenerationPredictor(GenerationSettings(), metrics=metrics)
        if container == "tensorrt"
        else NeuronPredictor(NeuronSettings(), metrics=metrics)
    )
    ModelServer(predictor, ServingSettings(), metrics=metrics)


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
    """Returns the table of each group of metrics, by the group's title."""
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


def _served_table(tensorrt: dict[str, ServedMetric], neuron: dict[str, ServedMetric]) -> str:
    rows = []
    for name, metric in {**tensorrt, **neuron}.items():
        owner = "both" if name in tensorrt and name in neuron else ""
        owner = owner or ("TensorRT" if name in tensorrt else "Neuron")
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        kind = f"{metric.kind} by {labels}" if labels else metric.kind
        rows.append((f"`{name}`", kind, metric.unit, owner, metric.meaning))
    return table("metric | type | unit | container | meaning", rows)


def _buckets(metrics: dict[str, ServedMetric]) -> str:
    """Returns an item for each set of buckets, with the histograms that have it."""
    users = dict[tuple[float, ...], list[str]]()
    for metric in metrics.values():
        if metric.buckets:
            users.setdefault(metric.buckets, []).append(f"`{metric.name}`")
    return "\n".join(
        f"- {', '.join(names)}: `{', '.join(f'{bound:g}' for bound in buckets)}`"
        for buckets, names in users.items()
    )
