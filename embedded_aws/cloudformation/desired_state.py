"""The desired state of a stack: a template with the values of one deployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.graph import entries
from slipway.embedded_aws.cloudformation.intrinsics import (
    Evaluator,
    Lookups,
    ResourceScope,
    TemplateError,
)
from slipway.embedded_aws.cloudformation.parameters import ParameterValue
from slipway.embedded_aws.cloudformation.resources.base import ResourceHandler
from slipway.embedded_aws.cloudformation.stack_contents import Output, StackIdentity, StackResource
from slipway.embedded_aws.cloudformation.template import Template

# Functions that exist only in the Rules section.
_RULE_FUNCTIONS = {
    "Fn::EachMemberEquals",
    "Fn::EachMemberIn",
    "Fn::RefAll",
    "Fn::ValueOf",
    "Fn::ValueOfAll",
}


@dataclass(frozen=True)
class DesiredState:
    """A template, the values of its parameters, and the settings of the stack as a whole."""

    template: Template
    parameters: Mapping[str, ParameterValue]
    tags: Mapping[str, str]
    notification_arns: tuple[str, ...]
    capabilities: tuple[str, ...]
    imported_exports: frozenset[str] = frozenset()
    # Logical ids of existing resources that are imported.
    adopted: frozenset[str] = frozenset()

    def evaluator(
        self, identity: StackIdentity, resources: ResourceScope, lookups: Lookups
    ) -> Evaluator:
        values: dict[str, Any] = {name: item.value for name, item in self.parameters.items()}
        values |= {
            "AWS::AccountId": identity.account_id,
            "AWS::NotificationARNs": list(self.notification_arns),
            "AWS::Partition": "aws",
            "AWS::Region": identity.region,
            "AWS::StackId": identity.id,
            "AWS::StackName": identity.name,
            "AWS::URLSuffix": "amazonaws.com",
        }
        return Evaluator(
            values=values,
            mappings=self.template.mappings,
            conditions=self.template.conditions,
            resources=resources,
            lookups=lookups,
        )

    def active(self, evaluator: Evaluator) -> tuple[str, ...]:
        """Returns the logical ids of resources whose condition holds, in creation order."""
        resources = self.template.resources
        return tuple(
            logical_id
            for logical_id in self.template.order
            if (condition := resources[logical_id].condition) is None
            or evaluator.condition(condition)
        )

    def outputs(self, evaluator: Evaluator) -> dict[str, Output]:
        """Evaluates the outputs whose condition holds; each must be a string."""
        outputs = {}
        for key, body in self.template.outputs.items():
            if "Condition" in body and not evaluator.condition(body["Condition"]):
                continue
            value = evaluator.evaluate(body.get("Value"))
            if not isinstance(value, str | int | float):
                raise TemplateError(
                    "Template format error: Output "
                    f"{key} is malformed. The Value field of every Outputs member must evaluate to "
                    "a String."
                )
            export = evaluator.evaluate(body.get("Export", {})).get("Name")
            outputs[key] = Output(key, scalar_text(value), body.get("Description"), export)
        return outputs

    def broken_rules(self, evaluator: Evaluator) -> list[str]:
        """Returns the assertions of the Rules section that do not hold."""
        broken = []
        for name, rule in self.template.rules.items():
            unsupported = sorted({key for key, _ in entries(rule)} & _RULE_FUNCTIONS)
            if unsupported:
                raise TemplateError(
                    f"Rule {name}: the embedded AWS does not evaluate {', '.join(unsupported)}"
                )
            if "RuleCondition" in rule and not evaluator.evaluate(rule["RuleCondition"]):
                continue
            broken += [
                f"Rule {name}: {assertion.get('AssertDescription', 'assertion failed')}"
                for assertion in rule.get("Assertions", [])
                if not evaluator.evaluate(assertion["Assert"])
            ]
        return broken


def with_stack_tags(
    handler: ResourceHandler, properties: Mapping[str, Any], tags: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the properties with the stack's tags added, if the resource type has tags.

    A tag of the resource itself overrides a stack tag of the same key.
    """
    effective = dict(properties)
    if not tags or "Tags" not in handler.properties:
        return effective
    if handler.tags_by_key:
        effective["Tags"] = {**tags, **properties.get("Tags", {})}
        return effective
    own = list(properties.get("Tags", []))
    keys = {tag["Key"] for tag in own}
    effective["Tags"] = own + [
        {"Key": key, "Value": value} for key, value in tags.items() if key not in keys
    ]
    return effective


class StackScope:
    """Ref and Fn::GetAtt of resources that exist; more may be added while this object is used."""

    def __init__(self, resources: Mapping[str, StackResource]) -> None:
        self._resources = resources

    def reference(self, logical_id: str) -> Any:
        return self._found(logical_id).physical_id

    def attribute(self, logical_id: str, attribute: str) -> Any:
        attributes = self._found(logical_id).attributes
        try:
            return attributes[attribute]
        except KeyError:
            raise TemplateError(
                f"Template error: resource {logical_id} does not support attribute type "
                f"{attribute} in Fn::GetAtt"
            ) from None

    def _found(self, logical_id: str) -> StackResource:
        resource = self._resources.get(logical_id)
        if resource is None or resource.physical_id is None:
            raise unresolved(logical_id)
        return resource


def unresolved(logical_id: str) -> TemplateError:
    """Returns the error for a reference to a resource that the stack does not have."""
    return TemplateError(
        f"Template format error: Unresolved resource dependencies [{logical_id}] in the Resources "
        "block of the template"
    )
