"""Options that a model's authors, vLLM or AWS ask for, such as the parser of its tool calls.

Nothing sets one of them silently: `slipway init` offers them. lmi_model_options.json names the
source of each row; lmi_engines.json says which version of vLLM has which parser.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from slipway.facts.lmi.options import covers, table_of

_PARSERS = {"tool_call_parser": "tool_parsers", "reasoning_parser": "reasoning_parsers"}


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of serving.properties that belong together.

    Args:
        purpose: what they are for; `remote_code` runs code from the checkpoint.
        options: names without `option.`, with their values.
        template: a file of vLLM's examples that the model's own files must have as well, for the
            option `chat_template` to name; None where the tokenizer's template is right.
        note: for which models of the family, as half a sentence; None where for all.
        source: where that stands.
    """

    purpose: Literal["tools", "reasoning", "reranking", "images", "remote_code"]
    options: Mapping[str, str | bool]
    template: str | None
    note: str | None
    source: str


def model_options(
    version: str, family: str | None, architecture: str | None = None
) -> tuple[ModelOptions, ...]:
    """Returns what may be set for a model on an image with vLLM, in the order of the table.

    Several rows of one purpose exclude each other, and their notes say which is for which model.
    The family is `model_type` of config.json, with `_` for `-`. vLLM looks up the code of a
    repository by the architecture.
    """
    table, engines = table_of("lmi/lmi_model_options.json"), table_of("lmi/lmi_engines.json")
    found = [
        ModelOptions(
            row["purpose"],
            MappingProxyType(row["options"]),
            row.get("template"),
            row.get("note"),
            table["sources"][row["source"]],
        )
        for row in table["rows"]
        if family in row["families"] and _applies(row, version)
    ]
    if any(covers(span, version) for span in engines["remote_code"].get(architecture, ())):
        source = f"vllm {engines['vllm'][version]}, tests/models/registry.py"
        trusted = MappingProxyType({"trust_remote_code": True})
        found.append(ModelOptions("remote_code", trusted, None, None, source))
    return tuple(found)


def _applies(row: Mapping[str, Any], version: str) -> bool:
    """Returns whether the version is in the row's span, and its vLLM has the row's parsers."""
    engines, spans = table_of("lmi/lmi_engines.json"), [[row["in"]]] if "in" in row else []
    for option, names in _PARSERS.items():
        if option in row["options"]:
            spans.append(engines[names].get(row["options"][option], []))
    return all(any(covers(span, version) for span in each) for each in spans)
