"""Rules about the network itself: its shape, its size, and the texts that it takes."""

from collections.abc import Iterator, Mapping

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem
from slipway.planning.memory import STRETCHES, longest_texts

# Bytes of a weight in a checkpoint. Two bits are the least that any format has, and fp32 in four
# formats side by side the most.
_LEAST_BYTES, _MOST_BYTES = 0.2, 16.0
# The first of two numbers is never the larger one.
_AT_MOST = (
    ("cached_layers", "layers"),
    ("windowed_layers", "layers"),
    ("windowed_layers", "cached_layers"),
    ("active_experts", "experts"),
    ("key_value_heads", "attention_heads"),
)
# Without the second field the first one has no effect.
_NEEDS = (
    ("windowed_layers", "sliding_window"),
    ("sliding_window", "windowed_layers"),
    ("active_experts", "experts"),
    ("tied_embeddings", "vocabulary_size"),
)
# For configs that do not say `positions`: families whose checkpoints learn a vector for each
# position, or build a table of them. The numbers are the defaults of Hugging Face's configuration
# classes; few checkpoints have more.
_POSITIONS: Mapping[str, int] = {
    "bert": 512,
    "distilbert": 512,
    "roberta": 512,
    "xlm_roberta": 512,
    "gptj": 2048,
    "gpt_neo": 2048,
    "gpt2": 1024,
    "opt": 2048,
}


def heads_divide_hidden_size(deployment: Deployment) -> Iterator[Problem]:
    """Every head has the same width, which follows from the other two unless it is given."""
    model = deployment.config.model
    width, heads = model.hidden_size, model.attention_heads
    if width is None or heads is None or model.head_size is not None or width % heads == 0:
        return
    yield problem(
        Code.HEADS_OF_NETWORK,
        f"a hidden size of {width} is no multiple of {heads} attention heads",
        "Take both from the checkpoint's config.json; `head_size` is its `head_dim`, if it has "
        "one.",
        ("model", "hidden_size"),
    )


def heads_share_keys_and_values(deployment: Deployment) -> Iterator[Problem]:
    """Key/value heads serve equally many attention heads each (grouped-query attention)."""
    model = deployment.config.model
    heads, groups = model.attention_heads, model.key_value_heads
    if heads is None or groups is None or heads < groups or heads % groups == 0:
        return
    yield problem(
        Code.HEADS_OF_NETWORK,
        f"{heads} attention heads are no multiple of {groups} key/value heads",
        "Take both from the checkpoint's config.json: `num_attention_heads` and "
        "`num_key_value_heads`.",
        ("model", "key_value_heads"),
    )


def numbers_agree(deployment: Deployment) -> Iterator[Problem]:
    """A part is not larger than its whole, and a field is not given without its counterpart."""
    model = deployment.config.model
    for part, whole in _AT_MOST:
        few, all_of_them = getattr(model, part), getattr(model, whole)
        if few is not None and all_of_them is not None and few > all_of_them:
            message = f"`{part}: {few}` is more than `{whole}: {all_of_them}`"
            remedy = "Take both from the checkpoint's config.json."
            yield problem(Code.HEADS_OF_NETWORK, message, remedy, ("model", part))
    for name, needed in _NEEDS:
        if getattr(model, name) is not None and getattr(model, needed) is None:
            message = f"`{name}` has no effect without `{needed}`"
            remedy = f"Add `{needed}` from the checkpoint's config.json, or remove `{name}`."
            yield problem(Code.HEADS_OF_NETWORK, message, remedy, ("model", name))
    if model.latent_size is not None and model.key_value_heads is not None:
        yield problem(
            Code.HEADS_OF_NETWORK,
            "latent attention keeps no heads of keys and values: `latent_size` excludes "
            "`key_value_heads`",
            "Remove `key_value_heads`, or `latent_size` if config.json has no `kv_lora_rank`.",
            ("model", "key_value_heads"),
        )


def size_fits_parameters(deployment: Deployment) -> Iterator[Problem]:
    """A wrong number of zeros would spoil every estimate of memory, disk and time."""
    size_gb, parameters = deployment.config.artifacts.size_gb, deployment.config.model.parameters
    if size_gb is None:
        return
    each = size_gb * 1e9 / parameters
    if not _LEAST_BYTES <= each <= _MOST_BYTES:
        yield problem(
            Code.SIZE_CONTRADICTS,
            f"{size_gb:g} GB for {parameters:,} parameters are {each:,.2f} bytes for each",
            f"Correct one of them: a checkpoint has from {_LEAST_BYTES:g} to {_MOST_BYTES:g} bytes "
            "for each parameter. `size_gb` counts in 1,000,000,000 bytes.",
            ("artifacts", "size_gb"),
        )


def texts_have_positions(deployment: Deployment) -> Iterator[Problem]:
    """A longer text indexes past the table of positions, which ends the request or the process."""
    model, options = deployment.config.model, getattr(deployment.config.serving, "options", {})
    most = model.positions or _POSITIONS.get(model.family)
    if most is None or STRETCHES & options.keys():
        return
    whose, remedy = f"family {model.family}", "set `family: other` in `model`"
    if model.positions is not None:
        whose, remedy = "network", "correct `positions` in `model`"
    for field, tokens in longest_texts(deployment):
        if tokens > most:
            yield problem(
                Code.TOO_MANY_TOKENS,
                f"{tokens} tokens are more than the {most} positions of the {whose}",
                f"Use {most} tokens at most, prompt and answer together. If the checkpoint has "
                f"more positions, {remedy}.",
                field,
            )
