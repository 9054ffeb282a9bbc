"""Plans of configs in an environment, published or not."""

from typing import Any

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.facts.instances import instance_types
from slipway.planning.lock import Lock
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resolve import resolve
from tests.support.projects import IMAGE_DIGESTS, LOCAL, lock_for


def plan(
    config: ModelConfig,
    environment: Environment = LOCAL,
    lock: Lock | None = None,
    **options: Any,
) -> DeploymentPlan:
    used = lock_for(config) if lock is None else lock
    return resolve(config, instance_types(), environment, used, IMAGE_DIGESTS, **options)


def lmi(**more: Any) -> dict[str, Any]:
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    weights = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}
    return {
        "serving": serving | more,
        "artifacts": {"release": None, "weights": weights},
        "endpoint": {"instances": ["ml.g5.xlarge"], "network_isolation": False},
    }
