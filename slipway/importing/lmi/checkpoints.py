"""Makes an LMI config of a checkpoint alone: vLLM, with the layout that the network allows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.environments import Environment
from slipway.facts.instances import Accelerator, instance_types
from slipway.facts.lmi.versions import usable_versions
from slipway.importing.draft import FieldName, Guess, KnownFacts
from slipway.importing.lmi.drafts import LmiDraft, lmi_draft
from slipway.importing.lmi.source import LmiSource
from slipway.planning.families.lmi.deployment import fits_key_value_heads
from slipway.planning.precision import has_bf16

_FRAMEWORKS = {"gpu": "djl-lmi", "neuron": "djl-neuronx"}
_BATCH = 16
_PROMPT_TOKENS, _NEW_TOKENS = 1024, 256


def checkpoint_draft(
    facts: CheckpointFacts,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    environment: Environment,
    *,
    origin: str,
) -> LmiDraft:
    """Makes the config of a checkpoint."""
    instance = instance_types().get(given.instance or "")
    accelerator = instance.accelerator if instance else None
    kind = accelerator.kind if accelerator else "gpu"
    framework = given.framework or _FRAMEWORKS.get(kind, _FRAMEWORKS["gpu"])
    chosen = replace(
        given,
        framework=framework,
        version=given.version or usable_versions(framework, accelerator)[-1],
    )
    found: dict[FieldName, Guess] = {}
    if given.framework is None:
        found["serving", "framework"] = Guess("AWS still develops it for this accelerator.")
    if given.version is None:
        found["serving", "version"] = Guess("the newest that runs on this type.")
    settings = {
        "option.tensor_parallel_degree": str(_degree(facts, accelerator)),
        "option.dtype": _dtype(facts, accelerator),
        "option.max_rolling_batch_size": str(_BATCH),
    }
    source = LmiSource(origin=origin, kind=origin, settings=settings)
    made = lmi_draft(source, chosen, {**guesses, **found}, environment)
    serving: dict[str, Any] = made.draft.content["serving"]
    more: dict[FieldName, Guess] = {
        ("serving", "tensor_parallel_degree"): Guess(
            "the largest degree on this type that splits the heads of the network."
        ),
        ("serving", "dtype"): Guess(_dtype_reason(facts, serving["dtype"])),
        ("serving", "max_rolling_batch_size"): Guess("a batch to begin with. Measure, then raise."),
    }
    serving |= _tokens(facts)
    positions = f" The network has {facts.positions} positions." if facts.positions else ""
    more["serving", "max_input_tokens"] = Guess(f"the longest prompt of your clients.{positions}")
    more["serving", "max_new_tokens"] = Guess("the longest answer of your clients.")
    there = {path: guess for path, guess in more.items() if path[-1] in serving}
    return replace(made, draft=replace(made.draft, guesses={**made.draft.guesses, **there}))


def _degree(facts: CheckpointFacts, accelerator: Accelerator | None) -> int:
    """Returns the largest number of accelerators that divides the heads, and has them all busy."""
    if accelerator is None:
        return 1
    parts = accelerator.neuron_cores or accelerator.count
    heads = facts.shape.get("attention_heads")
    groups = facts.shape.get("key_value_heads")
    return next(
        degree
        for degree in range(parts, 0, -1)
        if parts % degree == 0
        and (heads is None or heads % degree == 0)
        and (groups is None or fits_key_value_heads(degree, groups))
    )


def _dtype(facts: CheckpointFacts, accelerator: Accelerator | None) -> str:
    """Returns the checkpoint's precision, or another one where the GPU does not have it."""
    if facts.dtype == "bf16" and accelerator is not None and not has_bf16(accelerator):
        return "fp32" if facts.family == "t5" else "fp16"
    return facts.dtype if facts.dtype in ("bf16", "fp16") else "auto"


def _dtype_reason(facts: CheckpointFacts, dtype: str) -> str:
    quantized = f" Its weights are quantised with {facts.quantization}." * bool(facts.quantization)
    if dtype == facts.dtype:
        return f"the precision in config.json.{quantized}"
    if dtype == "auto":
        return f"config.json names no precision of two bytes.{quantized}"
    return f"config.json has {facts.dtype}, which this GPU does not compute.{quantized}"


def _tokens(facts: CheckpointFacts) -> dict[str, int]:
    """Returns lengths of prompt and answer that fit the positions together."""
    most = facts.positions or _PROMPT_TOKENS + _NEW_TOKENS
    answer = min(_NEW_TOKENS, max(1, most // 4))
    return {"max_input_tokens": min(_PROMPT_TOKENS, most - answer), "max_new_tokens": answer}
