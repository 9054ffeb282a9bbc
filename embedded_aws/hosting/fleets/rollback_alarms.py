"""The alarms that undo an update, and the waits in which they are watched."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.embedded_aws.hosting.fleets.running_variant import HostingContext
from slipway.embedded_aws.hosting.fleets.variant import VariantStartError
from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.identity import ACCOUNT_ID

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


def alarm_names(deployment: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the alarms of a DeploymentConfig."""
    alarms = deployment.get("AutoRollbackConfiguration", {}).get("Alarms", ())
    return tuple(alarm["AlarmName"] for alarm in alarms)


def watch(
    context: HostingContext,
    region: str,
    role: str | None,
    alarms: Sequence[str],
    wait_seconds: float,
    closing: threading.Event,
    check_limit: Callable[[], None],
) -> None:
    """Waits on the account's clock, and raises as soon as the update must be undone.

    The alarms are read at least once, as the execution role; a model without one is allowed
    everything. The message of the `VariantStartError` says why the update is undone. `check_limit`
    raises one too, once the update takes too long.
    """
    deadline = context.deadline(wait_seconds)
    watched = [name for name in alarms if role is None or _may_read(role, region, name)]
    while True:
        _require_calm(context, region, watched)
        check_limit()
        remaining = deadline.remaining_seconds()
        if remaining <= 0:
            return
        if closing.wait(min(remaining, _POLL_SECONDS)):
            raise VariantStartError("The embedded AWS was stopped.")


def _may_read(role: str, region: str, name: str) -> bool:
    """Returns whether a role may read an alarm, without which SageMaker does not watch it.

    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html
    """
    arn = f"arn:aws:cloudwatch:{region}:{ACCOUNT_ID}:alarm:{name}"
    if may(role, "cloudwatch:DescribeAlarms", arn):
        return True
    logger.warning(
        "alarm %s undoes no update, because %s may not cloudwatch:DescribeAlarms.", name, role
    )
    return False


def time_limit_error(seconds: float) -> str:
    """Returns the reason of an update that took too long."""
    return (
        f"The update was rolled back because it took longer than the {seconds:g} seconds of "
        "MaximumExecutionTimeoutInSeconds."
    )


def _require_calm(context: HostingContext, region: str, names: Sequence[str]) -> None:
    if not names:
        return
    cloudwatch = context.clients.client("cloudwatch", region)
    alarms = cloudwatch.describe_alarms(AlarmNames=list(names))["MetricAlarms"]
    fired = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
    if fired:
        raise VariantStartError(
            f"The update was rolled back because of alarms in state ALARM: {', '.join(fired)}."
        )
