"""Packs the scalable targets into the 1024 characters of a physical id."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

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


def pack(kept: dict[str, Any]) -> str:
    """Returns a text from which `unpack` gets the same."""
    text = json.dumps(kept, separators=(",", ":"))
    compressor = zlib.compressobj(9, zdict=_DICTIONARY)
    return base64.b64encode(compressor.compress(text.encode()) + compressor.flush()).decode()


def unpack(packed: str) -> dict[str, Any]:
    """Returns the argument of `pack`."""
    decompressor = zlib.decompressobj(zdict=_DICTIONARY)
    text = decompressor.decompress(base64.b64decode(packed)) + decompressor.flush()
    kept: dict[str, Any] = json.loads(text)
    return kept
