"""Reads a template's text: JSON, or YAML with CloudFormation's short-form functions.

It works on text and scalars only; `template` gives the sections their meaning.
"""

import json
from typing import Any

import yaml

from slipway.embedded_aws.api import ApiError

# YAML 1.1 reads an unquoted 2012-10-17 as a date; CloudFormation keeps it a string.
_TIMESTAMP_TAG = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    """YAML with `!Ref`, `!GetAtt` and the other short forms."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP_TAG]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    if suffix in ("Ref", "Condition"):
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def invalid(message: str) -> ApiError:
    return ApiError("ValidationError", message)


def scalar_text(value: Any) -> str:
    """Returns a scalar as CloudFormation writes it: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_document(text: str) -> dict[str, Any]:
    """Returns a template, a mapping, with every function in its long form; may raise ApiError."""
    try:
        if text.lstrip().startswith("{"):
            document = json.loads(text)
        else:
            document = yaml.load(text, Loader=_Loader)  # noqa: S506  # a subclass of the safe one
    except ValueError as error:
        raise invalid(f"Template format error: JSON not well-formed. ({error})") from None
    except yaml.YAMLError as error:
        raise invalid(f"Template format error: YAML not well-formed. ({error})") from None
    if not isinstance(document, dict):
        raise invalid("Template format error: unsupported structure.")
    return document
