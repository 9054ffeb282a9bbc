"""Renders the page of the resource types that the embedded AWS implements."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from embedded_aws.cloudformation.resources.base import ResourceHandler
from embedded_aws.cloudformation.resources.catalog import CUSTOM_TYPES, own_handlers

_HEAD = """\
# Resource types of the embedded AWS

For people who add a resource to a stack that also deploys to the embedded AWS. This page has the
types that Slipway implements, with their properties and attributes. A template with another
property is refused. [CloudFormation](cloudformation.md) says how stacks behave, and what other
types work.

This page is written by `python -m tools.reference`.
"""

_NOTES = f"""\
`AWS::Lambda::Function` runs Python, and only for custom resources
([how](cloudformation.md#custom-resources)). The custom resources are
`{"` and `".join(CUSTOM_TYPES)}`. They take any property.
`AWS::CodeBuild::Project` runs its [builds](builds.md). The types of `AWS::CDK` and
`AWS::CloudFormation` have no effect.
"""


def render() -> str:
    """Returns the page."""
    return "\n".join([_HEAD, _NOTES, *_tables(own_handlers())])


def _tables(handlers: Iterable[ResourceHandler]) -> Iterator[str]:
    ordered = sorted(handlers, key=lambda handler: handler.type_name)
    for service, group in groupby(ordered, key=lambda handler: handler.type_name.split("::")[1]):
        rows = [
            f"| `{handler.type_name}` | {_codes(handler.properties)} "
            f"| {_codes(handler.attributes)} |"
            for handler in group
        ]
        yield f"## {service}\n"
        yield "\n".join(["| type | properties | `Fn::GetAtt` |", "|---|---|---|", *rows, ""])


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
