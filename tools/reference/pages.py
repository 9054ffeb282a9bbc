"""The pages of docs that have blocks, and how a block is written into its page."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.embedded_aws.cloudformation.resources.catalog import CUSTOM_TYPES, own_handlers
from tools.reference import commands, configs, metrics, variables
from tools.reference.tables import table

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(
    r"^<!-- begin (?P<name>[^\n]+) -->\n\n.*?^<!-- end -->$", re.DOTALL | re.MULTILINE
)


def _resource_types() -> dict[str, str]:
    """Returns the resource types that the embedded AWS deploys."""
    rows = (
        (f"`{each.type_name}`", _codes(each.properties), _codes(each.attributes))
        for each in sorted(own_handlers(), key=lambda handler: handler.type_name)
    )
    types = table("type | properties | `Fn::GetAtt`", rows)
    return {"types": types, "custom resources": _codes(CUSTOM_TYPES)}


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


# The blocks of each page by their names, without the empty lines around them.
PAGES: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "reference.md": lambda: configs.blocks(ModelConfig),
    "reference/environments.md": lambda: configs.blocks(Environment),
    "commands.md": commands.blocks,
    "reference/variables.md": variables.blocks,
    "reference/metrics.md": metrics.blocks,
    "embedded-aws/services.md": _resource_types,
}


def written(page: str) -> str:
    """Returns a page with its blocks written anew; raises `ValueError` for other blocks."""
    text = (DOCS / page).read_text("utf-8")
    blocks = PAGES[page]()
    names = [match[1] for match in _BLOCK.finditer(text)]
    if sorted(names) != sorted(blocks):
        odd = ", ".join(sorted(set(names) ^ set(blocks)) or names)
        raise ValueError(f"docs/{page} needs each of its blocks once; look at: {odd}")
    return _BLOCK.sub(
        lambda match: f"<!-- begin {match[1]} -->\n\n{blocks[match[1]]}\n\n<!-- end -->", text
    )
