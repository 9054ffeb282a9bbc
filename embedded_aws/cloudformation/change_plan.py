"""The differences between a stack and its desired state: the content of a change set.

Planning changes nothing. It finds the same problems as CloudFormation before a deployment. It also
refuses settings that the embedded AWS cannot apply faithfully, so that none is silently ignored.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from slipway.embedded_aws.cloudformation.desired_state import (
    DesiredState,
    unresolved,
    with_stack_tags,
)
from slipway.embedded_aws.cloudformation.document import invalid
from slipway.embedded_aws.cloudformation.graph import entries
from slipway.embedded_aws.cloudformation.intrinsics import (
    KNOWN_AFTER_APPLY,
    Evaluator,
    TemplateError,
)
from slipway.embedded_aws.cloudformation.lookups import ServerLookups
from slipway.embedded_aws.cloudformation.resources.base import ResourceContext, ResourceHandler
from slipway.embedded_aws.cloudformation.resources.catalog import ResourceRegistry
from slipway.embedded_aws.cloudformation.stack import (
    Change,
    ChangePlan,
    OperationContext,
    Stack,
)
from slipway.embedded_aws.cloudformation.stack_contents import (
    KEEPING_POLICIES,
    StackIdentity,
    StackResource,
)
from slipway.embedded_aws.cloudformation.template import ResourceDefinition, attribute_references

_REMEDY = (
    "docs/embedded-aws.md lists what the embedded AWS does. `slipway local start --record TYPE` "
    "deploys such a resource without making anything."
)


def plan_changes(
    context: OperationContext,
    identity: StackIdentity,
    desired: DesiredState,
    stack: Stack | None,
    *,
    import_existing: bool = False,
) -> tuple[DesiredState, ChangePlan]:
    """Compares a stack with its desired state.

    Returns the state with the exports and the resources that it imports, and the plan. Raises
    ApiError if the state cannot be reached.
    """
    current = dict(stack.resources) if stack else {}
    deployed = stack.desired if stack else None
    outputs = dict(stack.outputs) if stack else {}
    _check_types(desired, context.registry)
    scope = _PlannedScope(current)
    lookups = ServerLookups(context, identity.region)
    evaluator = desired.evaluator(identity, scope, lookups)

    def find(definition: ResourceDefinition, handler: ResourceHandler) -> str | None:
        return _find_existing(context, identity, definition, handler) if import_existing else None

    try:
        broken = desired.broken_rules(evaluator)
        if broken:
            raise invalid("Template error: " + "; ".join(broken))
        scope.active = frozenset(desired.active(evaluator))
        changes, problems = _compare(desired, evaluator, scope, context.registry, find)
        if problems:
            raise invalid("; ".join(problems))
        changes += [
            Change(logical_id, resource.type, "Remove", resource.physical_id)
            for logical_id, resource in current.items()
            if logical_id not in scope.active
        ]
        new_outputs = desired.outputs(evaluator)
        imports = frozenset(
            evaluator.evaluate(argument)
            for part in desired.template.evaluated_parts()
            for key, argument in entries(part)
            if key == "Fn::ImportValue"
        )
    except TemplateError as error:
        raise invalid(str(error)) from None
    unchanged = (
        not changes
        and deployed is not None
        and new_outputs == outputs
        and deployed.tags == desired.tags
    )
    adopted = frozenset(change.logical_id for change in changes if change.action == "Import")
    desired = dataclasses.replace(desired, imported_exports=imports, adopted=adopted)
    return desired, ChangePlan(tuple(changes), unchanged)


def _find_existing(
    context: OperationContext,
    identity: StackIdentity,
    definition: ResourceDefinition,
    handler: ResourceHandler,
) -> str | None:
    """Returns the physical id of the resource to import; None if it must be created.

    CloudFormation imports a resource that has a literal name of the template, is kept when it
    leaves the stack, and belongs to no other stack
    (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html,
    2026-11-22). Any other that exists is created instead, which its service refuses.
    """
    name_property = handler.name_property
    name = definition.properties.get(name_property) if name_property else None
    if not isinstance(name, str) or definition.deletion_policy not in KEEPING_POLICIES:
        return None
    asked = ResourceContext(context.clients, identity, definition.logical_id, handler.service)
    found = handler.existing(asked, definition.properties)
    if found is None:
        return None
    belongs_to_a_stack = any(
        (resource.type, resource.physical_id) == (definition.type, found.physical_id)
        for stack in context.store.all(identity.region)
        for resource in list(stack.resources.values())
    )
    return None if belongs_to_a_stack else found.physical_id


class _PlannedScope:
    """The values of resources that are known before the deployment."""

    def __init__(self, current: Mapping[str, StackResource]) -> None:
        self.current = current
        self.active: frozenset[str] = frozenset()
        self.unknown: set[str] = set()

    def reference(self, logical_id: str) -> Any:
        if logical_id not in self.active:
            raise unresolved(logical_id)
        resource = self.current.get(logical_id)
        if resource is None or logical_id in self.unknown or resource.physical_id is None:
            return KNOWN_AFTER_APPLY
        return resource.physical_id

    def attribute(self, logical_id: str, attribute: str) -> Any:
        if self.reference(logical_id) == KNOWN_AFTER_APPLY:
            return KNOWN_AFTER_APPLY
        try:
            return self.current[logical_id].attributes[attribute]
        except KeyError:
            return KNOWN_AFTER_APPLY


def _check_types(desired: DesiredState, registry: ResourceRegistry) -> None:
    if unknown := registry.unknown_types(desired.template):
        raise invalid(
            f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]. {_REMEDY}"
        )
    for part in desired.template.evaluated_parts():
        for logical_id, attribute in attribute_references(part):
            definition = desired.template.resources.get(logical_id)
            if definition and not registry.get(definition.type).has_attribute(attribute):
                raise invalid(
                    f"Template error: resource {logical_id} does not support attribute type "
                    f"{attribute} in Fn::GetAtt"
                )


def _compare(
    desired: DesiredState,
    evaluator: Evaluator,
    scope: _PlannedScope,
    registry: ResourceRegistry,
    find_existing: Callable[[ResourceDefinition, ResourceHandler], str | None],
) -> tuple[list[Change], list[str]]:
    changes: list[Change] = []
    problems: list[str] = []
    retyped: list[str] = []
    for logical_id in (name for name in desired.template.order if name in scope.active):
        definition = desired.template.resources[logical_id]
        handler = registry.get(definition.type)
        evaluated = evaluator.evaluate(dict(definition.properties))
        problems += _property_problems(definition, handler, evaluated)
        existing = scope.current.get(logical_id)
        if existing is None:
            scope.unknown.add(logical_id)
            adopted = find_existing(definition, handler)
            action = "Add" if adopted is None else "Import"
            changes.append(Change(logical_id, definition.type, action, adopted))
        elif existing.type != definition.type:
            retyped.append(logical_id)
        else:
            properties = with_stack_tags(handler, evaluated, desired.tags)
            change = _modification(definition, handler, existing, properties)
            if change is not None:
                changes.append(change)
                if change.replacement != "False":
                    scope.unknown.add(logical_id)
    if retyped:
        problems.append(
            "Update of resource type is not permitted. The new template modifies resource type of "
            f"the following resources: [{', '.join(retyped)}]"
        )
    return changes, problems


def _property_problems(
    definition: ResourceDefinition, handler: ResourceHandler, evaluated: Mapping[str, Any]
) -> list[str]:
    prefix = f"Properties validation failed for resource {definition.logical_id} with message: #:"
    problems = [
        f"{prefix} required key [{name}] not found"
        for name in sorted(handler.required)
        if name not in evaluated
    ]
    if handler.properties:
        problems += [
            f"{prefix} property [{name}] of {definition.type} is unknown or not emulated. {_REMEDY}"
            for name in evaluated
            if name not in handler.properties
        ]
    return problems


def _modification(
    definition: ResourceDefinition,
    handler: ResourceHandler,
    existing: StackResource,
    properties: Mapping[str, Any],
) -> Change | None:
    details: list[dict[str, Any]] = []
    for name in sorted(set(existing.properties) | set(properties)):
        if existing.properties.get(name) == properties.get(name):
            continue
        dynamic = KNOWN_AFTER_APPLY in repr(properties.get(name))
        recreation = "Never"
        if name in handler.create_only:
            recreation = "Conditionally" if dynamic else "Always"
        target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation}
        details.append(
            {
                "Target": {**target, "Path": f"/Properties/{name}"},
                "Evaluation": "Dynamic" if dynamic else "Static",
                "ChangeSource": "ResourceReference" if dynamic else "DirectModification",
            }
        )
    details += [
        {
            "Target": {"Attribute": attribute, "RequiresRecreation": "Never"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for attribute, before, after in (
            ("Metadata", existing.metadata, definition.metadata),
            ("DeletionPolicy", existing.deletion_policy, definition.deletion_policy),
            (
                "UpdateReplacePolicy",
                existing.update_replace_policy,
                definition.update_replace_policy,
            ),
        )
        if before != after
    ]
    settled = existing.status not in ("CREATE_FAILED", "UPDATE_FAILED")
    if settled and not details:
        return None
    recreations = {each["Target"]["RequiresRecreation"] for each in details}
    replacement = "False"
    if "Always" in recreations or existing.status == "CREATE_FAILED":
        replacement = "True"
    elif "Conditionally" in recreations:
        replacement = "Conditional"
    return Change(
        definition.logical_id,
        definition.type,
        "Modify",
        existing.physical_id,
        replacement,
        tuple(details),
    )
