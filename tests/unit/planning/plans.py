"""Sections of LMI configs that break no rule."""

from typing import Any


def lmi(**more: Any) -> dict[str, Any]:
    serving = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "fp16"}
    weights = {"source": "hub", "repository": "gpt2", "revision": "a" * 40}
    return {
        "serving": serving | more,
        "artifacts": {"release": None, "weights": weights},
        "endpoint": {"instances": ["ml.g5.xlarge"], "network_isolation": False},
    }
