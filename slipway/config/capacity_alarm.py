"""The alarm `alarms.at_max_capacity`: its metrics, and the number that it compares.

SageMaker publishes no number of instances. It sends 1 divided by the number of active instances
with every request, as `InvocationsPerInstance`. The requests divided by the sum of these values are
therefore the number of instances. Both metrics have data in every minute with requests, and a fleet
without requests needs no more capacity.

Source, read 2026-11-24: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
"""

from slipway.config.alarm_kinds import REQUESTS, Formula, Metric, Watch

CAPACITY_WATCH = Watch(
    "AtMaxCapacity",
    "number of instances",
    REQUESTS,
    (
        Metric("Invocations", "None", "Sum", "All requests.", "invocations"),
        Metric(
            "InvocationsPerInstance",
            "None",
            "Sum",
            "Requests of one instance. The alarm divides all requests by it.",
            "invocations_per_instance",
        ),
    ),
    (Formula("instances", "invocations / invocations_per_instance", "Instances"),),
)
"""The row of the alarm. It is not in the table of alarms, because its threshold is no field."""

# The quotient is a whole number, apart from the last digits of a sum of fractions.
MARGIN_INSTANCES = 0.5
