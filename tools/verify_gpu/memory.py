"""The memory that is taken on a GPU, and the estimate of a plan."""

import subprocess

import yaml

from benchmarks.errors import BenchmarkError
from benchmarks.models import Model
from benchmarks.program import ROOT
from slipway.config.schema import ModelConfig
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.families import deployment_of
from slipway.planning.memory import estimate
from slipway.project import Project

_MIB_IN_GIB = 1024
# A model of the same family in the same container.
_CONFIG = "gpt2-autocomplete.yaml"


def used_mib() -> int:
    """Returns the memory of the first GPU that is taken, by all processes together, in MiB."""
    [used] = queried("memory.used")
    if not used.isdecimal():
        raise BenchmarkError(f"nvidia-smi states no memory: {used}")
    return int(used)


def queried(fields: str) -> list[str]:
    """Returns the values of fields of the first GPU, as nvidia-smi states them without units."""
    command = ("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "--id=0")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchmarkError(f"`{' '.join(command)}` failed: {error}") from None
    return [value.strip() for value in answer.stdout.split(",")]


def estimated(
    *, compute_capability: str, shape: Model, weights_bytes: int, limits: tuple[int, int, int]
) -> dict[str, str | int | float | None]:
    """Returns what `slipway plan` estimates for an instance type with this kind of GPU.

    The weights are the float32 checkpoint's. The limits are rows of a batch, tokens of a prompt and
    new tokens.
    """
    instance = _instance(compute_capability)
    rows, prompt, new = limits
    document = yaml.safe_load((ROOT / "model_configs" / _CONFIG).read_text("utf-8"))
    document["model"] |= {
        "parameters": weights_bytes // 4,
        "layers": shape.layers,
        "hidden_size": shape.width,
        "attention_heads": shape.heads,
    }
    document["serving"] |= {
        "max_batch_size": rows,
        "max_input_tokens": prompt,
        "max_new_tokens": new,
        "default_new_tokens": new,
    }
    document["endpoint"]["instances"] = [instance.name]
    config, environment = ModelConfig.model_validate(document), Project(ROOT).environment("ci")
    found = estimate(deployment_of(config, environment), instance)
    if found is None:
        raise BenchmarkError(f"the plan has no estimate for {instance.name}")
    return {
        "estimated for": instance.name,
        "estimated weights (MiB)": round(found.weights_gib * _MIB_IN_GIB),
        "estimated caches (MiB)": round((found.cache_gib or 0) * _MIB_IN_GIB),
        "assumed for the rest (MiB)": round(found.overhead_gib * _MIB_IN_GIB),
        "estimated (MiB)": round(found.total_gib * _MIB_IN_GIB),
    }


def _instance(compute_capability: str) -> InstanceFacts:
    """Returns the first instance type, by name, with the fewest GPUs of a kind."""
    fitting = [
        (each.accelerator.count, name, each)
        for name, each in instance_types().items()
        if each.accelerator and each.accelerator.compute_capability == compute_capability
    ]
    if not fitting:
        raise BenchmarkError(f"no instance type of slipway/facts has a GPU of {compute_capability}")
    return min(fitting)[-1]
