"""A template's sections, with every check that needs no values.

AWS refuses a malformed template when the change set (or stack) is created, before anything is
changed. `parse_template` does the same, in AWS's words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.cloudformation.document import invalid, read_document
from slipway.embedded_aws.cloudformation.graph import (
    CircularDependencyError,
    creation_order,
    entries,
    get_att_target,
    referenced_names,
)

_PSEUDO_PARAMETERS = {
    "AWS::AccountId",
    "AWS::NotificationARNs",
    "AWS::NoValue",
    "AWS::Partition",
    "AWS::Region",
    "AWS::StackId",
    "AWS::StackName",
    "AWS::URLSuffix",
}
_SECTIONS = {
    "AWSTemplateFormatVersion",
    "Conditions",
    "Description",
    "Mappings",
    "Metadata",
    "Outputs",
    "Parameters",
    "Resources",
    "Rules",
    "Transform",
}
_RESOURCE_ATTRIBUTES = {
    "Condition",
    "DeletionPolicy",
    "DependsOn",
    "Metadata",
    "Properties",
    "Type",
    "UpdateReplacePolicy",
}
# Attributes of real CloudFormation that would change a deployment, but have no effect here.
_UNSUPPORTED_ATTRIBUTES = {"CreationPolicy", "UpdatePolicy"}
_POLICIES = {
    "DeletionPolicy": ("Delete", "Retain", "RetainExceptOnCreate"),
    "UpdateReplacePolicy": ("Delete", "Retain"),
}
# Its functions (Fn::Length, Fn::ToJsonString) are evaluated even if it is not declared.
_TRANSFORMS = {"AWS::LanguageExtensions"}


@dataclass(frozen=True)
class ResourceDefinition:
    """One entry of the Resources section, functions unevaluated."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    condition: str | None
    depends_on: tuple[str, ...]
    deletion_policy: str
    update_replace_policy: str
    metadata: Any


@dataclass(frozen=True)
class Template:
    """A well-formed template.

    Attributes:
        text: as submitted, which GetTemplate returns.
        order: every logical id, after the ids that it depends on.
        dependencies: maps a logical id to the ids that it refers to or names in DependsOn.
    """

    text: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]
    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]
    rules: Mapping[str, Any]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, Mapping[str, Any]]
    order: tuple[str, ...]
    dependencies: Mapping[str, frozenset[str]]

    def evaluated_parts(self) -> Iterator[Mapping[str, Any]]:
        yield from (resource.properties for resource in self.resources.values())
        yield from self.outputs.values()


def parse_template(text: str) -> Template:
    """Reads and checks a template.

    Raises ApiError if it is malformed, has a circle, or refers to something that it does not have.
    """
    document = read_document(text)
    _check_sections(document)
    resources = {
        logical_id: _resource(logical_id, body)
        for logical_id, body in document["Resources"].items()
    }
    parameters = _section(document, "Parameters")
    outputs = _section(document, "Outputs")
    conditions = _section(document, "Conditions")
    _check_conditions(conditions, resources, outputs)
    _check_references(parameters, conditions, resources, outputs)
    dependencies = {
        name: _dependencies(definition, resources) for name, definition in resources.items()
    }
    try:
        order = creation_order(dependencies)
    except CircularDependencyError as error:
        raise invalid(
            f"Circular dependency between resources: [{', '.join(error.logical_ids)}]"
        ) from None
    return Template(
        text=text,
        description=document.get("Description", ""),
        parameters=parameters,
        mappings=_section(document, "Mappings"),
        conditions=conditions,
        rules=_section(document, "Rules"),
        resources=resources,
        outputs=outputs,
        order=order,
        dependencies=dependencies,
    )


def _check_sections(document: dict[str, Any]) -> None:
    unknown = [name for name in document if name not in _SECTIONS]
    if unknown:
        raise invalid(f"Invalid template property or properties [{', '.join(unknown)}]")
    if not isinstance(document.get("Resources"), dict) or not document["Resources"]:
        raise invalid("Template format error: At least one Resources member must be defined.")
    declared = document.get("Transform", [])
    transforms = declared if isinstance(declared, list) else [declared]
    unsupported = [str(name) for name in transforms if name not in _TRANSFORMS]
    if unsupported:
        raise invalid(
            f"No transform named {', '.join(unsupported)} found. The embedded AWS runs no macros; "
            "docs/embedded-aws.md lists what it does."
        )


def _section(document: dict[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name) or {}
    if not isinstance(section, dict):
        raise invalid(f"Template format error: {name} must be an object.")
    for key, body in section.items():
        if name in ("Parameters", "Outputs", "Mappings") and not isinstance(body, dict):
            raise invalid(f"Template format error: Every {name} member must be an object. ({key})")
    return section


def _resource(logical_id: str, body: Any) -> ResourceDefinition:
    if not isinstance(body, dict):
        raise invalid(
            f"Template format error: [/Resources/{logical_id}] resource definition is malformed"
        )
    if not isinstance(body.get("Type"), str):
        raise invalid(
            f"Template format error: [/Resources/{logical_id}] Every Resources object must "
            "contain a Type member."
        )
    unsupported = sorted(_UNSUPPORTED_ATTRIBUTES & set(body))
    if unsupported:
        raise invalid(
            f"Resource {logical_id}: the embedded AWS does not emulate {', '.join(unsupported)}. "
            "docs/embedded-aws.md lists what it does."
        )
    unknown = sorted(set(body) - _RESOURCE_ATTRIBUTES)
    if unknown:
        raise invalid(f"Invalid template resource property '{unknown[0]}'")
    properties = body.get("Properties") or {}
    if not isinstance(properties, dict):
        raise invalid(f"Template format error: Properties of {logical_id} must be an object.")
    depends_on = body.get("DependsOn", [])
    return ResourceDefinition(
        logical_id=logical_id,
        type=body["Type"],
        properties=properties,
        condition=body.get("Condition"),
        depends_on=(depends_on,) if isinstance(depends_on, str) else tuple(depends_on),
        deletion_policy=_policy(logical_id, body, "DeletionPolicy"),
        update_replace_policy=_policy(logical_id, body, "UpdateReplacePolicy"),
        metadata=body.get("Metadata"),
    )


def _policy(logical_id: str, body: dict[str, Any], attribute: str) -> str:
    allowed = _POLICIES[attribute]
    value: str = body.get(attribute, "Delete")
    if value not in allowed:
        raise invalid(
            f"Template error: resource {logical_id}: {attribute} is {value}, and must be one of "
            f"{', '.join(allowed)}"
        )
    return value


def _check_conditions(
    conditions: Mapping[str, Any],
    resources: Mapping[str, ResourceDefinition],
    outputs: Mapping[str, Mapping[str, Any]],
) -> None:
    missing = {
        definition.condition
        for definition in resources.values()
        if definition.condition is not None and definition.condition not in conditions
    } | {
        body["Condition"]
        for body in outputs.values()
        if "Condition" in body and body["Condition"] not in conditions
    }
    for definition in resources.values():
        missing |= set(_if_conditions(dict(definition.properties))) - set(conditions)
    missing |= set(_if_conditions(dict(outputs))) - set(conditions)
    if missing:
        raise invalid(
            "Template format error: Unresolved condition dependency "
            f"{', '.join(sorted(missing))} in the Resources block of the template"
        )


def _if_conditions(value: Any) -> Iterator[str]:
    for key, choice in entries(value):
        if key == "Fn::If" and isinstance(choice, list) and choice and isinstance(choice[0], str):
            yield choice[0]


def _check_references(
    parameters: Mapping[str, Any],
    conditions: Mapping[str, Any],
    resources: Mapping[str, ResourceDefinition],
    outputs: Mapping[str, Mapping[str, Any]],
) -> None:
    known = set(parameters) | set(resources) | _PSEUDO_PARAMETERS
    by_resources = (
        name
        for definition in resources.values()
        for name in (*referenced_names(dict(definition.properties)), *definition.depends_on)
    )
    by_outputs = referenced_names(dict(outputs))
    for block, names in (("Resources", by_resources), ("Outputs", by_outputs)):
        missing = [name for name in names if name not in known]
        if missing:
            raise invalid(
                f"Template format error: Unresolved resource dependencies [{_listed(missing)}] in "
                f"the {block} block of the template"
            )
    allowed = set(parameters) | _PSEUDO_PARAMETERS
    missing = [name for name in referenced_names(dict(conditions)) if name not in allowed]
    if missing:
        raise invalid(
            f"Template format error: Unresolved dependencies [{_listed(missing)}]. Cannot "
            "reference resources in the Conditions block of the template"
        )
    for definition in resources.values():
        if definition.logical_id in definition.depends_on:
            raise invalid(f"Circular dependency between resources: [{definition.logical_id}]")


def _dependencies(
    definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
) -> frozenset[str]:
    named = {*referenced_names(dict(definition.properties)), *definition.depends_on}
    return frozenset(name for name in named if name in resources)


def attribute_references(value: Any) -> Iterator[tuple[str, str]]:
    """Yields every (logical id, attribute) that a value reads with Fn::GetAtt."""
    for key, argument in entries(value):
        if key == "Fn::GetAtt":
            logical_id, attribute = get_att_target(argument)
            if isinstance(attribute, str):
                yield logical_id, attribute


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
