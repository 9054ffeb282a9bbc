"""Chooses an LMI image and its settings for a checkpoint, each with its reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.environments import Environment
from slipway.config.sections.serving.lmi import LmiServing
from slipway.facts.instances import Accelerator, instance_types
from slipway.facts.lmi.engines import serves
from slipway.facts.lmi.versions import usable_versions
from slipway.importing.draft import FieldName, Guess, KnownFacts
from slipway.importing.lmi.drafts import LmiDraft, lmi_draft
from slipway.importing.lmi.source import LmiSource
from slipway.planning.families.lmi.deployment import fits_key_value_heads
from slipway.planning.families.lmi.setup import rendered
from slipway.planning.quantization import has_bf16

VLLM_IMAGE: Final = "djl-lmi"
_NEURON_IMAGE = "djl-neuronx"
_BATCH = 16
_PROMPT_TOKENS, _NEW_TOKENS = 1024, 256
# What classes of networks that write text end with (LmiConfigRecommender.java).
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_CLASSIFIERS = ("classification", "reranking")
SERVED_TASKS: Final = ("embedding", *_CLASSIFIERS)
"""Tasks other than text that an image with vLLM serves."""
_VLLM_HANDLER = "djl_python.lmi_vllm.vllm_async_service"
_PIPELINE_HANDLER = "djl_python.huggingface"
_ESTIMATED = ("max_input_tokens", "max_new_tokens")

FieldPath = tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """A value that the checkpoint and the instance type suggest, and the reason as a sentence."""

    value: Any
    reason: str


def framework_for(accelerator: Accelerator | None) -> str:
    """Returns the image that AWS still develops for an accelerator."""
    is_neuron = accelerator is not None and accelerator.kind == "neuron"
    return _NEURON_IMAGE if is_neuron else VLLM_IMAGE


def version_for(facts: CheckpointFacts, accelerator: Accelerator | None, framework: str) -> Chosen:
    if facts.task == "embedding" and framework == VLLM_IMAGE:
        # Its handler is the first that answers so; a rule says which GPUs it needs.
        return Chosen(usable_versions(framework)[-1], "the newest, which answers with embeddings.")
    usable = usable_versions(framework, accelerator)
    named = [name for name in facts.architectures if name.endswith(_WRITERS)]
    having = [at for at in usable if any(serves("vllm", at, name) for name in named)]
    if framework == VLLM_IMAGE and having and having[-1] != usable[-1]:
        return Chosen(having[-1], "the newest whose vLLM has code for the network.")
    return Chosen(usable[-1], "the newest that runs on this type.")


def serving_section(
    facts: CheckpointFacts, accelerator: Accelerator | None, framework: str
) -> tuple[dict[str, Any], dict[FieldPath, str]]:
    """Returns the section `serving` of a first config, and the reasons by the fields' paths."""
    section: dict[str, Any] = {"framework": framework}
    version = version_for(facts, accelerator, framework)
    settings = {("version",): version, **settings_for(facts, accelerator, framework)}
    for path, chosen in settings.items():
        inner = section.setdefault(path[0], {}) if len(path) > 1 else section
        inner[path[-1]] = chosen.value
    reasons = {("serving", *path): f"Here: {each.reason}" for path, each in settings.items()}
    return {name: section[name] for name in LmiServing.model_fields if name in section}, reasons


def checkpoint_draft(
    facts: CheckpointFacts,
    given: KnownFacts,
    guesses: Mapping[FieldName, Guess],
    environment: Environment,
    *,
    origin: str,
) -> LmiDraft:
    instance = instance_types().get(given.instance or "")
    accelerator = instance.accelerator if instance else None
    framework = given.framework or framework_for(accelerator)
    version = version_for(facts, accelerator, framework)
    chosen = replace(given, framework=framework, version=given.version or version.value)
    found: dict[FieldName, Guess] = {}
    if given.framework is None:
        found["serving", "framework"] = Guess("AWS still develops it for this accelerator.")
    if given.version is None:
        found["serving", "version"] = Guess(version.reason)
    settings = settings_for(facts, accelerator, framework)
    keys = {
        "option.entryPoint" if path[-1] == "entry_point" else f"option.{path[-1]}": each.value
        for path, each in settings.items()
        if path[-1] not in _ESTIMATED
    }
    source = LmiSource(
        origin=origin, kind=origin, settings={key: rendered(value) for key, value in keys.items()}
    )
    made = lmi_draft(source, chosen, {**guesses, **found}, environment)
    serving: dict[str, Any] = made.draft.content["serving"]
    serving |= {path[0]: each.value for path, each in settings.items() if path[0] in _ESTIMATED}
    more = {
        ("serving", *path): Guess(each.reason)
        for path, each in settings.items()
        if path[0] in serving and path[-1] in (*serving, *serving.get("options", {}))
    }
    return replace(made, draft=replace(made.draft, guesses={**made.draft.guesses, **more}))


def settings_for(
    facts: CheckpointFacts, accelerator: Accelerator | None, framework: str
) -> dict[FieldPath, Chosen]:
    """Returns fields of the section `serving`, by their path in it.

    Sources for tasks other than text: vllm_async_service.py, vllm_rb_properties.py,
    huggingface.py and LmiConfigRecommender.java of djl-serving, 0.36.0-lmi27-dlc.
    """
    writes = any(name.endswith(_WRITERS) for name in facts.architectures)
    if facts.task in _CLASSIFIERS and not writes and framework == VLLM_IMAGE:
        # It takes its task from the class of the network.
        reason = "vLLM's handler in this image answers with texts and embeddings alone."
        return {
            ("entry_point",): Chosen(_PIPELINE_HANDLER, reason),
            ("tensor_parallel_degree",): Chosen(1, "the handler computes on one GPU."),
            ("dtype",): Chosen("fp16", "half of the memory of fp32, and every GPU computes it."),
            ("rolling_batch",): Chosen("disable", "the network writes no text."),
        }
    found: dict[FieldPath, Chosen] = {
        ("tensor_parallel_degree",): _degree(facts, accelerator),
        ("dtype",): _dtype(facts, accelerator),
    }
    # In the other images it depends on the model whether the handler batches by itself.
    if framework == VLLM_IMAGE:
        reason = "a batch to begin with. Measure, then raise."
        found["max_rolling_batch_size",] = Chosen(_BATCH, reason)
    if facts.task == "embedding" and framework == VLLM_IMAGE:
        task = "feature-extraction" if writes else "text-embedding"
        reason = "the files of the checkpoint say so. vLLM pools as modules.json says."
        found["options", "task"] = Chosen(task, reason)
        if not writes:
            reason = "by itself the server would not take vLLM for this class of networks."
            found["entry_point",] = Chosen(_VLLM_HANDLER, reason)
            found["rolling_batch",] = Chosen("disable", "vLLM's handler batches by itself.")
            found["options", "async_mode"] = Chosen(True, "vLLM's handler is asynchronous.")
    return {**found, **dict(_lengths(facts, framework))}


def _degree(facts: CheckpointFacts, accelerator: Accelerator | None) -> Chosen:
    """Returns the largest number of accelerators that divides the heads, and has them all busy."""
    parts = (accelerator.neuron_cores or accelerator.count) if accelerator else 1
    heads, groups, experts = (
        value if isinstance(value := facts.shape.get(name), int) else None
        for name in ("attention_heads", "key_value_heads", "experts")
    )
    if not facts.shape:
        reason = "one copy over the whole instance. It has to divide the heads of the network."
        return Chosen(parts, reason)
    if heads is None:
        return Chosen(1, "no file tells the attention heads, which a larger degree has to divide.")
    degree = next(
        degree
        for degree in range(parts, 0, -1)
        if parts % degree == 0
        and heads % degree == 0
        and (groups is None or fits_key_value_heads(degree, groups))
        and (experts is None or degree <= experts)
    )
    reason = "the largest degree on this type that splits the heads of the network."
    return Chosen(degree, reason)


def _dtype(facts: CheckpointFacts, accelerator: Accelerator | None) -> Chosen:
    """Returns the checkpoint's precision, or another one where the GPU does not have it."""
    # Most checkpoints are in bf16, if none was read.
    dtype, source = (facts.dtype, "config.json") if facts.shape else ("bf16", "most checkpoints")
    quantized = f" Its weights are quantised with {facts.quantization}." * bool(facts.quantization)
    if dtype == "bf16" and accelerator is not None and not has_bf16(accelerator):
        # T5 in fp16 answers degraded text (facts: lmi).
        reason = f"this GPU does not compute bf16, the precision in {source}.{quantized}"
        return Chosen("fp32" if facts.family == "t5" else "fp16", reason)
    if dtype in ("bf16", "fp16"):
        return Chosen(dtype, f"the precision in {source}.{quantized}")
    return Chosen("auto", f"config.json names no precision of two bytes.{quantized}")


def _lengths(facts: CheckpointFacts, framework: str) -> Iterator[tuple[FieldPath, Chosen]]:
    """Yields lengths of prompt and answer that fit the positions together.

    vLLM does not start if its cache cannot hold one text of the longest length.
    """
    most = facts.positions or _PROMPT_TOKENS + _NEW_TOKENS
    answer, reason = facts.new_tokens or _NEW_TOKENS, "the longest answer of your clients."
    if facts.task in SERVED_TASKS:
        answer, reason = 1, "a score is the likelihood of one word: clients ask for `logprobs`."
    if facts.task == "embedding":
        reason = "an embedding is no text."
    answer = min(answer, max(1, most // 4), _PROMPT_TOKENS)
    if answer == facts.new_tokens:
        reason = "generation_config.json says it."
    prompt = min(_PROMPT_TOKENS, most - answer)
    positions = f" The network has {facts.positions} positions." if facts.positions else ""
    yield ("max_input_tokens",), Chosen(prompt, f"the longest prompt of your clients.{positions}")
    yield ("max_new_tokens",), Chosen(answer, reason)
    batch = _BATCH * (prompt + answer) // 1024 * 1024
    if framework == VLLM_IMAGE and facts.positions is not None and facts.positions > batch:
        reason = (
            f"vLLM does not start if its cache cannot hold one text of this length. The network "
            f"has {facts.positions} positions; so many tokens are in a full batch, for which "
            "`slipway plan` counts the memory."
        )
        yield ("options", "max_model_len"), Chosen(batch, reason)
