"""Configs whose weights are partitioned ahead of time."""

from typing import Any

from slipway.config.schema import ModelConfig
from tests.support.projects import model_config


def config(framework: str, version: str, *, family: str = "opt", **serving: Any) -> ModelConfig:
    section = {
        "container": "lmi", "framework": framework, "version": version, "dtype": "fp16",
        "tensor_parallel_degree": 4,
    }  # fmt: skip
    return model_config(
        model={"family": family},
        serving=section | serving,
        artifacts={
            "release": None,
            "sample": None,
            "weights": {"source": "s3", "uri": "s3://my-models/any/"},
            "compile": {"instance": "ml.g5.12xlarge", "volume_size_gb": 70},
        },
        endpoint={"instances": ["ml.g5.12xlarge"], "network_isolation": False},
    )
