"""Renders the page of the metrics.

A container's own metrics come from its server, which is made here without a model. CloudWatch's
metrics come from the table of alarms.
"""

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
from slipway.config.alarm_kinds import MACHINES, REQUESTS
from slipway.config.async_alarms import ASYNC_REQUESTS, QUEUE, watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import ALARM_KINDS, Alarms
from tools.reference.configs import split_description

_HEAD = """\
# Reference: metrics

For anyone who watches an endpoint, or a container outside of SageMaker. This page has the metrics
of CloudWatch that the alarms and the autoscaling use, and those that Slipway's containers serve.

This page is written by `python -m tools.reference`.
"""

_ALARMS = """\
Each variant of an endpoint has an alarm for each threshold in `alarms` of the
[model config](../reference.md#alarms). An alarm begins in CloudWatch with the stack's name and
`Alarms`. [Alarms](../concepts/alarms.md) explains how to choose the thresholds, and which alarms
may undo an update.
"""

_METRICS = """\
SageMaker publishes these metrics for each variant, with the dimensions `EndpointName` and
`VariantName`. The metrics of the queue have only `EndpointName`. With `mode: scale_to_zero`, the
metrics of requests have the dimension `InferenceComponentName` instead. The alarms look at each
minute.

An endpoint with `mode: async` has the metrics of machines, of the requests of its queue, and of the
queue. Any other endpoint has the metrics of requests and of machines.
"""

_GROUP = """\
Namespace `{namespace}`. What an alarm makes of missing data (`TreatMissingData`): `{missing}`.
"""

_DATA = """\
- **Metrics of requests** have data only in minutes with a request. Missing data is no alarm,
  because without requests nothing fails.
- **Metrics of the queue** have data in every minute. Without requests, the division of the alarm
  at maximum capacity has no result, and the alarm is `OK`.
- **Metrics of machines** have data in every minute. Missing data makes the alarm
  `INSUFFICIENT_DATA`. SageMaker publishes them as the execution role, which therefore needs
  `cloudwatch:PutMetricData` in `/aws/sagemaker/Endpoints`. Slipway's roles have that right.
- **Metrics of GPUs** add up over the GPUs of an instance: 400 is the end of four GPUs. Slipway
  multiplies the threshold by the number of GPUs.

Sources: AWS's pages of [SageMaker's metrics][metrics] (read 2026-11-22) and of
[asynchronous endpoints][async] (read 2026-11-24). On the embedded AWS the
values come from real requests and from your machine, and there is no GPU metric
([monitoring](../embedded-aws/monitoring.md)). No alarm of Slipway has run in a real account.

[metrics]: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
[async]: https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
"""

_SCALING = """\
Application Auto Scaling watches one metric per variant and makes its own alarms for it. The policy
that starts the first instance of an asynchronous endpoint follows `HasBacklogWithoutCapacity`.
"""

_SCALING_DATA = """\
`GPUUtilization` is in `/aws/sagemaker/Endpoints`, and the others are in `AWS/SageMaker`. The
metrics of a queue have only the dimension `EndpointName`. Concurrent requests have a value every
ten seconds, so that a fleet grows sooner. The others have one each minute. A fleet shrinks equally
fast with all. Source: [AWS's page of scaling policies][policies] (read 2026-11-24). No scaling
policy has run in a real account. On the embedded AWS, invocations, queues and
[copies](../embedded-aws/inference-components.md#scaling) have data.

`NoCapacityInvocationFailures` counts requests that found no copy. Its alarm wakes an endpoint that
[scales to zero](../guides/scale-to-zero.md), and notifies nobody.

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


# CloudWatch's name to the predefined metric or None, the field of `autoscaling`, and the meaning.
SCALING_METRICS = {
    "InvocationsPerInstance": (
        "SageMakerVariantInvocationsPerInstance",
        "target_invocations_per_instance_per_minute",
        "Requests of a minute, divided by the instances.",
    ),
    "ConcurrentRequestsPerModel": (
        "SageMakerVariantConcurrentRequestsPerModelHighResolution",
        "target_concurrent_requests_per_instance",
        "Requests in flight in a container, those that wait among them.",
    ),
    "ConcurrentRequestsPerCopy": (
        "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
        "target_concurrent_requests_per_copy",
        "Requests in flight in a copy, with `mode: scale_to_zero`.",
    ),
    "InvocationsPerCopy": (
        "SageMakerInferenceComponentInvocationsPerCopy",
        "target_invocations_per_copy_per_minute",
        "Requests of a minute, divided by the copies, with `mode: scale_to_zero`.",
    ),
    "GPUUtilization": (
        None,
        "target_gpu_utilization_percent",
        "Use of the GPUs, added up over the GPUs of an instance.",
    ),
    "ApproximateBacklogSizePerInstance": (
        None,
        "target_backlog_per_instance",
        "Requests in the queue of an asynchronous endpoint, divided by the instances.",
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
        _METRICS,
        *_metric_tables(),
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
    yield "| alarm | threshold in `alarms` | in `rollback_alarms` | meaning |"
    yield "|---|---|---|---|"
    for name, kind in ALARM_KINDS.items():
        meaning, _ = split_description(Alarms.model_fields[kind.field].description or "")
        yield f"| {kind.watch.construct_id} | `{kind.field}` | `{name}` | {meaning} |"
    meaning, _ = split_description(Alarms.model_fields["at_max_capacity"].description or "")
    construct_id = CAPACITY_WATCHES["realtime"].construct_id
    yield f"| {construct_id} | none: `at_max_capacity` | none | {meaning} |"
    yield ""


def _metric_tables() -> Iterator[str]:
    by_mode = (
        watch_of(kind, is_async=is_async)
        for is_async in (False, True)
        for kind in ALARM_KINDS.values()
    )
    watches = [watch for watch in (*by_mode, *CAPACITY_WATCHES.values()) if watch is not None]
    for group in (REQUESTS, MACHINES, ASYNC_REQUESTS, QUEUE):
        yield f"### {group.title}\n"
        yield _GROUP.format(namespace=group.namespace, missing=group.missing_data)
        yield "| metric | alarm | unit | statistic | meaning |"
        yield "|---|---|---|---|---|"
        rows = [
            f"| `{metric.name}` | {watch.construct_id} | {metric.unit} "
            f"| {metric.statistic} | {metric.meaning} |"
            for watch in watches
            if watch.group == group
            for metric in watch.metrics
        ]
        # Metrics of machines are the same in both modes.
        yield from dict.fromkeys(rows)
        yield ""
    yield "### When they have data\n"


def _scaling_table() -> Iterator[str]:
    yield "| CloudWatch metric | predefined metric | meaning |"
    yield "|---|---|---|"
    for name, (predefined, _, meaning) in SCALING_METRICS.items():
        shown = f"`{predefined}`" if predefined else "none"
        yield f"| `{name}` | {shown} | {meaning} |"
    yield ""
    for name, (_, config_field, _) in SCALING_METRICS.items():
        times = ", times the number of GPUs" if name == "GPUUtilization" else ""
        yield f"- `{config_field}` holds `{name}` at its value{times}."
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
