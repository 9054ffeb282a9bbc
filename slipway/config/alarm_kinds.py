"""What a row of the table of alarms consists of.

The rows are in `slipway/config/sections/alarms.py`, each beside the field of its threshold. The
plan, the rules, the constructs, `slipway status` and the pages of docs/reference go by them.

Source of the metrics, read 2026-11-22:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
"""

from dataclasses import dataclass

# How many units of SageMaker's metric are one of the unit in a field's name.
_METRIC_UNITS = {"percent": 1, "milliseconds": 1000, "seconds": 1}


@dataclass(frozen=True)
class MetricGroup:
    """Metrics of a variant that have data at the same times.

    Args:
        missing_data: what an alarm makes of a minute without data (TreatMissingData).
        mode: the only mode that has them; empty for others.
    """

    title: str
    namespace: str
    missing_data: str
    of_variant: bool = True
    mode: str = ""


# Without requests there are no data points, and nothing failed.
REQUESTS = MetricGroup("Requests", "AWS/SageMaker", "notBreaching")
# A machine always has values. Without them nothing is known, so the alarm goes to
# INSUFFICIENT_DATA instead of OK.
MACHINES = MetricGroup("Machines", "/aws/sagemaker/Endpoints", "missing")


@dataclass(frozen=True)
class Metric:
    """A metric of SageMaker, as an alarm reads it.

    `query` is its name in the alarm's formulas; it is empty for an alarm without formulas.
    """

    name: str
    unit: str
    statistic: str
    meaning: str
    query: str = ""


CLIENT_ERRORS = Metric(
    "Invocation4XXErrors",
    "None",
    "Sum",
    "Requests that the container answered 4XX.",
    "client_errors",
)


@dataclass(frozen=True)
class Formula:
    """A value that CloudWatch computes from an alarm's metrics and its earlier formulas."""

    query: str
    expression: str
    label: str


@dataclass(frozen=True)
class Watch:
    """What an alarm watches: the row beside the field of its threshold.

    Args:
        construct_id: id of its construct, and therefore a part of its name in CloudWatch.
        formulas: the last one is compared with the threshold.
        gpu_part: part of each GPU that the metric measures, such as `memory`. Such a metric adds
            up over the GPUs of an instance, and types without a GPU do not have it. Empty for any
            other metric.
    """

    construct_id: str
    description: str
    group: MetricGroup
    metrics: tuple[Metric, ...]
    formulas: tuple[Formula, ...] = ()
    gpu_part: str = ""


@dataclass(frozen=True)
class AlarmKind:
    """An alarm that every variant of a model can have; `field` of `alarms` has its threshold."""

    field: str
    watch: Watch

    @property
    def name(self) -> str:
        """Returns the name in `rollout.rollback_alarms`: the field's, without its unit."""
        return self.field.rpartition("_")[0]

    @property
    def metric_units_per_field_unit(self) -> int:
        """Returns how many units of the metric are one unit of the field."""
        return _METRIC_UNITS[self.field.rpartition("_")[2]]
