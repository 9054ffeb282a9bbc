"""Renders the page of the metrics.

A container's own metrics come from its server, which is made here without a model. A test compares
the table of CloudWatch's metrics with the golden templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from containers.neuron.predictor import EncoderPredictor
from containers.neuron.settings import EncoderSettings
from containers.serving.metrics import Metrics, Record, ignore
from containers.serving.server import ModelServer
from containers.serving.service import AnyPredictor
from containers.serving.settings import ServingSettings
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings

_HEAD = """\
# Reference: metrics

For anyone who watches an endpoint, or a container outside of SageMaker. This page has the metrics
of CloudWatch that the alarms and the autoscaling use, and those that Slipway's containers serve.

This page is written by `python -m tools.reference`.
"""

_ALARMS = """\
SageMaker publishes these metrics for each variant, with the dimensions `EndpointName` and
`VariantName`. The alarms look at each minute. [Operations](../operations.md#its-alarms) says what
each alarm means. `alarms` in the [model config](../reference.md#alarms) sets the thresholds.
"""

_GROUP = """\
Namespace `{namespace}`. What an alarm makes of missing data (`TreatMissingData`): `{missing}`.
"""

_DATA = """\
- **Metrics of requests** have data only in minutes with a request. Missing data is no alarm,
  because without requests nothing fails.
- **Metrics of instances** have data in every minute. Missing data makes the alarm
  `INSUFFICIENT_DATA`. SageMaker publishes them as the execution role, which therefore needs
  `cloudwatch:PutMetricData` in `/aws/sagemaker/Endpoints`. Slipway's roles have that right.
- **`GPUMemoryUtilization`** adds up over the GPUs of an instance: 400 is the end of four GPUs.
  Slipway multiplies the threshold by the number of GPUs.

Source: [AWS's page of SageMaker's metrics][metrics] (read 2026-11-22). On the embedded AWS the
values come from real requests and from your machine, and there is no GPU metric
([monitoring](../embedded-aws/monitoring.md)). No alarm of Slipway has run in a real account.

[metrics]: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
"""

_SCALING = """\
Application Auto Scaling watches one predefined metric per variant and makes its own alarms for it.
"""

_SCALING_DATA = """\
Both metrics are in `AWS/SageMaker`. `InvocationsPerInstance` has a value each minute.
`ConcurrentRequestsPerModel` has one every ten seconds, so that a fleet grows sooner. A fleet
shrinks equally fast with both. Source: [AWS's page of scaling policies][policies] (read
2026-11-23). No scaling policy has run in a real account, and the embedded AWS evaluates none.

[policies]: https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-add-code-define.html
"""

_OWN = """\
The TensorRT container and the Neuron container serve these metrics where `SLIPWAY_METRICS_PORT`
names a port ([variables](variables.md)). Then `GET /metrics` on that port answers in Prometheus'
text format. SageMaker reaches only port 8080 of an endpoint. The metrics are therefore for an image
that you run yourself. LMI and Triton images have metrics of their own.
"""

_PROCESS = """\
`/metrics` also has Prometheus' own metrics of the process. Among them are
`process_resident_memory_bytes`, `process_cpu_seconds_total` and `process_open_fds`.
"""


@dataclass(frozen=True)
class CloudWatchMetric:
    """A metric that an alarm watches.

    Args:
        alarm: construct id of the alarm.
        namespace: of the metric.
        name: of the metric.
        unit: as AWS documents it.
        statistic: that the alarm takes of each minute.
        missing: what the alarm makes of a minute without data (TreatMissingData).
        meaning: what a value says.
    """

    alarm: str
    namespace: str
    name: str
    unit: str
    statistic: str
    missing: str
    meaning: str


_REQUESTS, _MACHINES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
_NO_ALARM, _UNKNOWN = "notBreaching", "missing"

ALARM_METRICS = (
    CloudWatchMetric(
        "ServerErrorRate", _REQUESTS, "Invocation5XXErrors", "None", "Sum", _NO_ALARM,
        "Requests that the container answered 5XX.",
    ),
    CloudWatchMetric(
        "ServerErrorRate", _REQUESTS, "InvocationModelErrors", "None", "Sum", _NO_ALARM,
        "Requests without a 2XX answer, time-outs and broken connections among them.",
    ),
    CloudWatchMetric(
        "ServerErrorRate", _REQUESTS, "Invocation4XXErrors", "None", "Sum", _NO_ALARM,
        "Requests that the container answered 4XX. The alarm subtracts them.",
    ),
    CloudWatchMetric(
        "ServerErrorRate", _REQUESTS, "Invocations", "None", "Sum", _NO_ALARM,
        "All requests, of which the alarm takes the share.",
    ),
    CloudWatchMetric(
        "ModelLatency", _REQUESTS, "ModelLatency", "Microseconds", "p99", _NO_ALARM,
        "Time until the container has answered, as SageMaker sees it.",
    ),
    CloudWatchMetric(
        "OverheadLatency", _REQUESTS, "OverheadLatency", "Microseconds", "p99", _NO_ALARM,
        "The rest of the time that SageMaker takes for a request.",
    ),
    CloudWatchMetric(
        "ClientErrorRate", _REQUESTS, "Invocation4XXErrors", "None", "Sum", _NO_ALARM,
        "Requests that the container answered 4XX.",
    ),
    CloudWatchMetric(
        "ClientErrorRate", _REQUESTS, "Invocations", "None", "Sum", _NO_ALARM,
        "All requests, of which the alarm takes the share.",
    ),
    CloudWatchMetric(
        "Memory", _MACHINES, "MemoryUtilization", "Percent", "Maximum", _UNKNOWN,
        "Main memory that the containers of an instance use.",
    ),
    CloudWatchMetric(
        "Disk", _MACHINES, "DiskUtilization", "Percent", "Maximum", _UNKNOWN,
        "Disk space that the containers of an instance use.",
    ),
    CloudWatchMetric(
        "GPUMemory", _MACHINES, "GPUMemoryUtilization", "Percent", "Maximum", _UNKNOWN,
        "GPU memory that the containers of an instance use.",
    ),
)  # fmt: skip

# Predefined metric to CloudWatch's name of it, and the field of `autoscaling`.
SCALING_METRICS = {
    "SageMakerVariantInvocationsPerInstance": (
        "InvocationsPerInstance",
        "target_invocations_per_instance_per_minute",
        "Requests of a minute, divided by the instances.",
    ),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "ConcurrentRequestsPerModel",
        "target_concurrent_requests_per_instance",
        "Requests in flight in a container, those that wait among them.",
    ),
}


@dataclass(frozen=True)
class ServedMetric:
    """A metric in Prometheus' format.

    Args:
        name: as `/metrics` has it.
        kind: counter, gauge or histogram.
        labels: names of the labels.
        buckets: upper bounds of a histogram's buckets.
        meaning: its line of help.
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


def served_metrics() -> dict[str, dict[str, ServedMetric]]:
    """Returns the metrics of each container, by container and name."""
    tensorrt, neuron = RecordedMetrics(), RecordedMetrics()
    _make_server(TextGenerationPredictor(GenerationSettings(), metrics=tensorrt), tensorrt)
    _make_server(EncoderPredictor(EncoderSettings(), metrics=neuron), neuron)
    return {"tensorrt": tensorrt.found, "neuron": neuron.found}


def _make_server(predictor: AnyPredictor, metrics: Metrics) -> None:
    ModelServer(predictor, ServingSettings(), metrics=metrics)


def render() -> str:
    """Returns the page as Markdown."""
    parts = [
        _HEAD,
        "## CloudWatch: alarms\n",
        _ALARMS,
        *_alarm_table(),
        _DATA,
        "## CloudWatch: autoscaling\n",
        _SCALING,
        *_scaling_table(),
        _SCALING_DATA,
        "## Slipway's containers\n",
        _OWN,
        *_served_table(),
        _PROCESS,
        *_buckets(),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def _alarm_table() -> Iterator[str]:
    for title, namespace, missing in (
        ("Requests", _REQUESTS, _NO_ALARM),
        ("Instances", _MACHINES, _UNKNOWN),
    ):
        yield f"### {title}\n"
        yield _GROUP.format(namespace=namespace, missing=missing)
        yield "| metric | alarm | unit | statistic | meaning |"
        yield "|---|---|---|---|---|"
        for metric in ALARM_METRICS:
            if (metric.namespace, metric.missing) == (namespace, missing):
                yield (
                    f"| `{metric.name}` | {metric.alarm} | {metric.unit} | {metric.statistic} "
                    f"| {metric.meaning} |"
                )
        yield ""
    yield "### When they have data\n"


def _scaling_table() -> Iterator[str]:
    yield "| CloudWatch metric | predefined metric | meaning |"
    yield "|---|---|---|"
    for predefined, (name, _, meaning) in SCALING_METRICS.items():
        yield f"| `{name}` | `{predefined}` | {meaning} |"
    yield ""
    for name, config_field, _ in SCALING_METRICS.values():
        yield f"- `{config_field}` holds `{name}` at its value."
    yield ""


def _served_table() -> Iterator[str]:
    tensorrt, neuron = served_metrics().values()
    yield "| metric | type | unit | container | meaning |"
    yield "|---|---|---|---|---|"
    for name, metric in {**tensorrt, **neuron}.items():
        owners = [key for key, found in served_metrics().items() if name in found]
        owner = (
            "both" if len(owners) > 1 else {"tensorrt": "TensorRT", "neuron": "Neuron"}[owners[0]]
        )
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        kind = f"{metric.kind} by {labels}" if labels else metric.kind
        yield f"| `{name}` | {kind} | {metric.unit} | {owner} | {metric.meaning} |"
    yield ""


def _buckets() -> Iterator[str]:
    """Yields a sentence for each set of buckets, with the histograms that have it."""
    users = dict[tuple[float, ...], list[str]]()
    for found in served_metrics().values():
        for metric in found.values():
            if metric.buckets and f"`{metric.name}`" not in users.get(metric.buckets, ()):
                users.setdefault(metric.buckets, []).append(f"`{metric.name}`")
    yield "Upper bounds of the histograms' buckets:\n"
    for buckets, names in users.items():
        bounds = ", ".join(f"{bound:g}" for bound in buckets)
        yield f"- {', '.join(names)}: `{bounds}`"
    yield ""
