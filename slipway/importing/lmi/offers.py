"""Options that a model's authors ask for, as lines that a user may bring to life."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from slipway.config.checkpoint import CheckpointFacts
from slipway.config.yaml_text import comment_lines, lines
from slipway.facts.lmi.model_options import ModelOptions, model_options

_PURPOSES: Final[Mapping[str, str]] = {
    "tools": "Tool calls",
    "reasoning": "Reasoning apart from the answer",
    "images": "Images in a request",
    "remote_code": "The checkpoint's own Python code, which this class of networks needs",
}
# A reranker's scores are no answer that the handler of the image gives.
_WRITING = ("chat", "generation", "vision")
_SERVING, _OPTIONS = ("serving",), ("serving", "options")


def offered(facts: CheckpointFacts, version: str, *, has_options: bool) -> list[str]:
    """Returns commented lines for the end of the section `serving`; none if nothing is offered."""
    architecture = facts.architectures[0] if facts.architectures else None
    rows = [
        row
        for row in model_options(version, facts.family, architecture)
        if row.purpose == "remote_code" or (row.purpose in _PURPOSES and facts.task in _WRITING)
    ]
    found = [line for row in rows for line in _lines(row)]
    needs_key = not has_options and any(row.purpose != "remote_code" for row in rows)
    head = "Nothing below is set. Remove the `#` before the lines that your clients need."
    return [*comment_lines(head, "    "), *["  # options:"] * needs_key, *found] if found else []


def _lines(row: ModelOptions) -> Iterator[str]:
    path = _SERVING if row.purpose == "remote_code" else _OPTIONS
    indent = "  " * len(path)
    words = f"{_PURPOSES[row.purpose]}{f': {row.note}' if row.note else ''}."
    if row.template is not None:
        words += f" `chat_template` has to name {row.template} of vLLM's examples, in the "
        words += "checkpoint's folder."
    yield from comment_lines(f"{words} Source: {row.source}.", indent)
    options: Mapping[str, Any] = row.options
    for line in lines(options, lambda _: "", path):
        yield f"{indent}# {line.strip()}"
