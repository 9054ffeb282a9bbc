"""What Undo remembers: the scalable targets, packed into the 1024 characters of a physical id.

The text has a format. A function of a later release gets texts of an earlier one, and an upgrade
that is rolled back has the earlier function read a text of the later one. The dictionary is part of
the format and never changes, and a reader ignores a variant that the stack does not scale. The
format is therefore kept as a variant without a name. The first texts have none.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from ..answers import RefusedError

# Texts that most targets contain. A compressed text refers to them, and is much shorter.
_DICTIONARY = (
    b'"SuspendedState":null,"Policies":[{"PolicyName":"steps","PolicyType":"StepScaling",'
    b'"StepScalingPolicyConfiguration":{"AdjustmentType":"ChangeInCapacity","StepAdjustments":['
    b'{"MetricIntervalLowerBound":0.0,"MetricIntervalUpperBound":600.0,"ScalingAdjustment":1},'
    b'"Cooldown":60,"MetricAggregationType":"Maximum"}},{"PolicyName":"invocations-per-instance",'
    b'"PolicyType":"TargetTrackingScaling","TargetTrackingScalingPolicyConfiguration":'
    b'{"TargetValue":600.0,"PredefinedMetricSpecification":{"PredefinedMetricType":'
    b'"SageMakerVariantInvocationsPerInstance"},"ScaleOutCooldown":60,"ScaleInCooldown":300}}],'
    b'"Schedules":[{"ScheduledActionName":"workday","Schedule":"cron(0 7 ? * MON-FRI *)",'
    b'"Timezone":"Europe/Zurich","ScalableTargetAction":{"MinCapacity":2,"MaxCapacity":6}}]'
)


_FORMAT = 1
_FORMAT_KEY = ""


def pack(kept: Mapping[str, Any]) -> str:
    """Returns a text from which `unpack` gets the same; an empty one for nothing."""
    if not kept:
        return ""
    text = json.dumps({_FORMAT_KEY: _FORMAT, **kept}, separators=(",", ":"))
    compressor = zlib.compressobj(9, zdict=_DICTIONARY)
    return base64.b64encode(compressor.compress(text.encode()) + compressor.flush()).decode()


def unpack(packed: str) -> dict[str, Any]:
    """Returns the argument of `pack`.

    Raises:
        RefusedError: a later release packed it in another format.
    """
    if not packed:
        return {}
    decompressor = zlib.decompressobj(zdict=_DICTIONARY)
    text = decompressor.decompress(base64.b64decode(packed)) + decompressor.flush()
    kept: dict[str, Any] = json.loads(text)
    if kept.pop(_FORMAT_KEY, _FORMAT) != _FORMAT:
        raise RefusedError("A later release of Slipway remembered the scalable targets. Deploy it.")
    return kept
