"""Rules about shadow variants."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem


def shadow_follows_one_variant(deployment: Deployment) -> Iterator[Problem]:
    """An endpoint with a shadow variant has one production variant.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/shadow-tests-create.html, read 2026-11.
    """
    endpoint = deployment.config.endpoint
    if endpoint.shadow is not None and endpoint.variants:
        yield problem(
            Code.SHADOW_EXCLUDES,
            f"`shadow` and {len(endpoint.variants)} variants exclude each other: SageMaker copies "
            "the requests of one production variant",
            "Remove `shadow`, or remove `variants`.",
            ("endpoint", "shadow"),
        )


def shadow_is_asked_in_real_time(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker documents shadow variants for real-time inference alone.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelInfrastructureConfig.html
    has RealTimeInference as the only infrastructure, read 2026-11.
    """
    endpoint = deployment.config.endpoint
    if endpoint.shadow is not None and endpoint.mode == "async":
        yield problem(
            Code.SHADOW_EXCLUDES,
            "`shadow` and `mode: async` exclude each other: SageMaker copies requests in real time "
            "alone",
            "Remove `shadow`, or set `mode: realtime`.",
            ("endpoint", "shadow"),
        )


RULES = (shadow_follows_one_variant, shadow_is_asked_in_real_time)
