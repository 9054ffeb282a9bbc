"""Evaluates a template's functions.

An `Evaluator` knows parameters, conditions and mappings. It asks a `ResourceScope` for the values
of Ref and Fn::GetAtt. The same evaluator therefore serves a change set, whose resources do not
exist yet, and a deployment.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Protocol

from slipway.embedded_aws.cloudformation.document import scalar_text
from slipway.embedded_aws.cloudformation.graph import SUB_VARIABLE, get_att_target

# {{resolve:ssm:/name}} and other dynamic references
_DYNAMIC_REFERENCE = re.compile(r"\{\{resolve:(?P<service>[^:}]+):(?P<key>[^}]+)\}\}")
# Functions of real CloudFormation that are not evaluated.
_REFUSED_FUNCTIONS = {"Fn::Cidr"}


class NoValue(Enum):
    """The value of `Ref: AWS::NoValue`: the property or list item is left out."""

    NO_VALUE = "AWS::NoValue"


NO_VALUE = NoValue.NO_VALUE
# Stands in a change set for a value that is known only after deployment; AWS shows the same text.
KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"


class TemplateError(Exception):
    """A function cannot be evaluated; the message is for the template's author."""


class ResourceScope(Protocol):
    """The values of Ref and Fn::GetAtt; a method raises TemplateError if there is none."""

    def reference(self, logical_id: str) -> Any: ...
    def attribute(self, logical_id: str, attribute: str) -> Any: ...


class Lookups(Protocol):
    """Values from outside the stack; a method raises TemplateError if there is none."""

    def exported(self, name: str) -> str: ...
    def stack_output(self, stack: str, output: str, region: str | None) -> str: ...
    def dynamic(self, service: str, key: str) -> str: ...
    def availability_zones(self, region: str) -> list[str]: ...


class Evaluator:
    """Evaluates values of one template with one set of parameters."""

    def __init__(
        self,
        *,
        values: Mapping[str, Any],
        mappings: Mapping[str, Any],
        conditions: Mapping[str, Any],
        resources: ResourceScope,
        lookups: Lookups,
    ) -> None:
        self._values = values
        self._mappings = mappings
        self._condition_bodies = conditions
        self._conditions: dict[str, bool] = {}
        self._resources = resources
        self._lookups = lookups
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.condition,
            "Fn::And": lambda items: all(self._truth(item) for item in items),
            "Fn::Base64": lambda item: base64.b64encode(self._text(item).encode()).decode(),
            "Fn::Contains": self._contains,
            "Fn::Equals": self._equals,
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._get_att,
            "Fn::GetAZs": self._get_azs,
            "Fn::GetStackOutput": self._stack_output,
            "Fn::If": self._if,
            "Fn::ImportValue": lambda item: self._lookups.exported(self._text(item)),
            "Fn::Join": self._join,
            "Fn::Length": lambda item: len(self._list(item, "Fn::Length")),
            "Fn::Not": lambda items: not self._truth(items[0]),
            "Fn::Or": lambda items: any(self._truth(item) for item in items),
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._sub,
            "Fn::ToJsonString": lambda item: json.dumps(self.evaluate(item), separators=(",", ":")),
        }

    def evaluate(self, value: Any) -> Any:
        """Returns the value with every function evaluated and every NoValue left out.

        Raises TemplateError if a function is misused or refers to something that does not exist.
        """
        if isinstance(value, dict):
            if len(value) == 1:
                ((key, argument),) = value.items()
                if key in self._functions and (key != "Condition" or isinstance(argument, str)):
                    return self._call(key, argument)
                if key in _REFUSED_FUNCTIONS:
                    raise TemplateError(
                        f"Template error: the embedded AWS does not evaluate {key}; "
                        "docs/embedded-aws.md lists what it does"
                    )
                if key.startswith("Fn::"):
                    raise TemplateError(f"Template error: {key} is not a supported function")
            evaluated = {key: self.evaluate(item) for key, item in value.items()}
            return {key: item for key, item in evaluated.items() if item is not NO_VALUE}
        if isinstance(value, list):
            items = [self.evaluate(item) for item in value]
            return [item for item in items if item is not NO_VALUE]
        if isinstance(value, str):
            return self._dynamic(value)
        return value

    def _stack_output(self, argument: Any) -> str:
        named = {key: self._text(item) for key, item in argument.items()}
        stack, output, region = (
            named.pop(key, "") for key in ("StackName", "OutputName", "Region")
        )
        if not stack or not output or named:  # the role of another account, which is not here
            raise TemplateError(
                "Template error: Fn::GetStackOutput takes StackName, OutputName and Region here"
            )
        return self._lookups.stack_output(stack, output, region or None)

    def condition(self, name: Any) -> bool:
        """Evaluates a named condition, once."""
        if name not in self._condition_bodies:
            raise TemplateError(f"Template error: unresolved condition dependency {name}")
        if name not in self._conditions:
            self._conditions[name] = self._truth(self._condition_bodies[name])
        return self._conditions[name]

    def _call(self, function: str, argument: Any) -> Any:
        try:
            return self._functions[function](argument)
        except TemplateError:
            raise
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            raise TemplateError(
                f"Template error: {function} cannot be evaluated with {json.dumps(argument)}"
            ) from None

    def _ref(self, name: str) -> Any:
        if name == NO_VALUE.value:
            return NO_VALUE
        if name in self._values:
            return self._values[name]
        return self._resources.reference(name)

    def _get_att(self, argument: Any) -> Any:
        logical_id, attribute = get_att_target(argument)
        return self._resources.attribute(logical_id, self._text(attribute))

    def _if(self, argument: list[Any]) -> Any:
        name, if_true, if_false = argument
        return self.evaluate(if_true if self.condition(name) else if_false)

    def _truth(self, value: Any) -> bool:
        result = self.evaluate(value)
        if isinstance(result, bool):
            return result
        if result in ("true", "false"):
            return bool(result == "true")
        raise TemplateError(f"Template error: {json.dumps(value)} is not a condition")

    def _equals(self, argument: list[Any]) -> bool:
        left, right = (self.evaluate(item) for item in argument)
        return bool(_comparable(left) == _comparable(right))

    def _contains(self, argument: list[Any]) -> bool:
        items, wanted = (self.evaluate(item) for item in argument)
        return _comparable(wanted) in [_comparable(item) for item in items]

    def _join(self, argument: list[Any]) -> str:
        separator, items = argument
        return str(separator).join(
            _string(item) for item in self._list(items, "Fn::Join") if item is not NO_VALUE
        )

    def _split(self, argument: list[Any]) -> list[str]:
        separator, text = argument
        return self._text(text).split(separator)

    def _select(self, argument: list[Any]) -> Any:
        index, items = argument
        chosen = self._list(items, "Fn::Select")
        position = int(self.evaluate(index))
        if not 0 <= position < len(chosen):
            if any(KNOWN_AFTER_APPLY in str(item) for item in chosen):
                return KNOWN_AFTER_APPLY
            raise TemplateError(
                f"Template error: Fn::Select cannot select nonexistent value at index {position}"
            )
        return chosen[position]

    def _find_in_map(self, argument: list[Any]) -> Any:
        name, *keys = (self.evaluate(item) for item in argument[:3])
        found: Any = self._mappings.get(name)
        for key in keys:
            found = found.get(str(key)) if isinstance(found, dict) else None
        if found is None:
            if len(argument) > 3 and "DefaultValue" in argument[3]:
                return self.evaluate(argument[3]["DefaultValue"])
            path = "::".join(str(key) for key in (name, *keys))
            raise TemplateError(f"Template error: Unable to get mapping for {path}")
        return found

    def _get_azs(self, region: Any) -> list[str]:
        return self._lookups.availability_zones(self._text(region) or self._values["AWS::Region"])

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument

        def replace(match: re.Match[str]) -> str:
            name = match["name"].strip()
            if name in variables:
                return self._text(variables[name])
            logical_id, _, attribute = name.partition(".")
            if attribute:
                return _string(self._resources.attribute(logical_id, attribute))
            return _string(self._ref(name))

        return str(self._dynamic(SUB_VARIABLE.sub(replace, text).replace("${!", "${")))

    def _text(self, value: Any) -> str:
        return _string(self.evaluate(value))

    def _list(self, value: Any, function: str) -> list[Any]:
        items = self.evaluate(value)
        if not isinstance(items, list):
            raise TemplateError(f"Template error: {function} needs a list, not {json.dumps(items)}")
        return items

    def _dynamic(self, text: str) -> str:
        if "{{resolve:" not in text:
            return text
        return _DYNAMIC_REFERENCE.sub(
            lambda match: self._lookups.dynamic(match["service"], match["key"]), text
        )


def _string(value: Any) -> str:
    """Returns a scalar as text, as CloudFormation joins it."""
    if isinstance(value, str | int | float):
        return scalar_text(value)
    raise TemplateError(f"Template error: {json.dumps(value, default=str)} is not a string")


def _comparable(value: Any) -> Any:
    """Returns a scalar as text, because Fn::Equals compares text: 1 equals "1"."""
    return value if isinstance(value, list | dict | NoValue) else _string(value)
