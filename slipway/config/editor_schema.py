"""The JSON Schema that editors complete and check model configs with.

`slipway schema` writes it to model_configs/schema.json, where the first line of each config points
to. A test fails when the file and the schema differ.
"""

import json
from typing import Any

from slipway.config.schema import ModelConfig
from slipway.config.sections.base import INSTANCE_TYPE_REFERENCE
from slipway.config.sections.serving import PACKAGES
from slipway.errors import UserError
from slipway.facts.instances import instance_types

SCHEMA_FILE = "schema.json"
FIRST_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}"


def render() -> str:
    """Returns the file's text, always the same; raises `UserError` for an unusable package."""
    if PACKAGES.problems:
        raise UserError(PACKAGES.problems.values())
    schema = _with_references(ModelConfig.model_json_schema())
    schema["$defs"]["InstanceType"] = {
        "description": "Hosting instance type.",
        "enum": sorted(instance_types()),
        "type": "string",
    }
    # An adapter has the other sections from its base.
    sections = schema["required"]
    schema["required"] = ["name"]
    schema["if"] = {"not": {"required": ["adapter_of"]}}
    schema["then"] = {"required": sections}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Slipway model config",
        **{key: value for key, value in schema.items() if key != "title"},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _with_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_references(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == INSTANCE_TYPE_REFERENCE:
        return {"$ref": INSTANCE_TYPE_REFERENCE}
    # Every field would get a title that says no more than its name.
    return {
        key: _with_references(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
