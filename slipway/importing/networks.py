"""What the name of a checkpoint tells of the network: its family, and the number of its weights."""

import re
from collections.abc import Mapping
from dataclasses import replace

from slipway.importing.draft import FieldName, Guess, KnownFacts
from slipway.importing.weights import WeightsPlace

# The first of these texts in a name decides. No other name tells the family.
_FAMILIES: Mapping[str, str] = {
    "openchatkit": "gpt_neox",
    "gpt-neox": "gpt_neox",
    "gpt_neox": "gpt_neox",
    "pythia": "gpt_neox",
    "dolly-v2": "gpt_neox",
    "stablelm-base-alpha": "gpt_neox",
    "gpt-neo": "gpt_neo",
    "gpt_neo": "gpt_neo",
    "gpt-j": "gptj",
    "gptj": "gptj",
    "gpt4all-j": "gptj",
    "gpt2": "gpt2",
    "flan-t5": "t5",
    "flan-ul2": "t5",
    "t5-": "t5",
    "bloom": "bloom",
    "codellama": "llama",
    "vicuna": "llama",
    "llama": "llama",
    "codegen25": "llama",
    "mistral": "mistral",
    "qwen2": "qwen2",
    "distilbert": "distilbert",
    "xlm-roberta": "xlm_roberta",
    "roberta": "roberta",
    "bert-": "bert",
    "opt-": "opt",
}
# `llama-2-13b`, `opt-350m`, `mixtral-8x7b`; not the 4 of `4bit`.
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z])")
_UNITS: Mapping[str, int] = {"b": 10**9, "m": 10**6}
# Made of Llama and Qwen2, but of other architectures.
_OTHERS = ("mixtral", "llama-4", "qwen2-vl", "qwen2.5-vl", "qwen2-audio", "mistral-small-3")


def family_of(name: str) -> str | None:
    """Returns the family that a name points to; None where it points to none."""
    lower = name.lower()
    if any(other in lower for other in _OTHERS):
        return None
    return next((family for text, family in _FAMILIES.items() if text in lower), None)


def parameters_of(name: str) -> int | None:
    """Returns the number of weights that a name says, such as `13b`; None where it says none.

    Of several experts it is their product, which is more than the true number: experts share the
    attention layers.
    """
    found = _SIZE.search(re.sub(r"[_/]", "-", name.lower()))
    if found is None:
        return None
    experts = int(found[1] or 1)
    return round(experts * float(found[2]) * _UNITS[found[3]])


def read_network(given: KnownFacts, place: WeightsPlace) -> KnownFacts:
    """Returns the facts with those that the checkpoint's files say; given facts stay."""
    facts = place.facts
    given = replace(
        given,
        family=given.family or facts.family,
        parameters=given.parameters or facts.parameters,
        size_gb=place.size_gb,
    )
    # The shape belongs to the checkpoint's own family.
    has_shape = facts.family is None or given.family in (facts.family, "other")
    return replace(given, shape=facts.shape) if has_shape else given


def guessed_network(
    given: KnownFacts, *names: str, unread: str = ""
) -> tuple[KnownFacts, dict[FieldName, Guess]]:
    """Returns the facts with the family and the parameters that names tell, and these guesses.

    Facts that are given stay. The most telling name comes first. `unread` says why the checkpoint's
    files do not tell, as half a sentence.
    """
    guesses: dict[FieldName, Guess] = {}
    reason = "the name of the checkpoint says it."
    if unread:
        reason = f"the name of the checkpoint says it, because {unread}."
    if given.family is None:
        family = next(filter(None, map(family_of, names)), None)
        if family is not None:
            given = replace(given, family=family)
            guesses["model", "family"] = Guess(reason)
    if given.parameters is None:
        parameters = next(filter(None, map(parameters_of, names)), None)
        if parameters is not None:
            given = replace(given, parameters=parameters)
            guesses["model", "parameters"] = Guess(reason)
    return given, guesses
