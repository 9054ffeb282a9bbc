"""The alarms that undo an update."""

from collections.abc import Sequence

from embedded_aws.clients import LoopbackClients
from embedded_aws.hosting.variants import VariantStartError


def require_calm(clients: LoopbackClients, region: str, names: Sequence[str]) -> None:
    """Raises if an alarm is raised.

    Args:
        clients: calls CloudWatch.
        region: the alarms' region.
        names: the alarms of AutoRollbackConfiguration.

    Raises:
        VariantStartError: the message names the raised alarms.
    """
    if not names:
        return
    cloudwatch = clients.client("cloudwatch", region)
    alarms = cloudwatch.describe_alarms(AlarmNames=list(names))["MetricAlarms"]
    fired = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
    if fired:
        raise VariantStartError(
            f"The update was rolled back because of alarms in state ALARM: {', '.join(fired)}."
        )
