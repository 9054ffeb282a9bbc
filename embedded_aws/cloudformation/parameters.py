"""A template's parameters: the values of a deployment, and whether they are allowed."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.cloudformation.document import invalid, scalar_text

_SSM_VALUE = re.compile(r"AWS::SSM::Parameter::Value<(?P<inner>.+)>")
# The measure of a value, how it compares with the bound, and the rule in AWS's words.
_BOUNDS: Mapping[str, tuple[Callable[[str], float], Callable[[float, float], bool], str]] = {
    "MinLength": (len, operator.ge, "must contain at least {} characters"),
    "MaxLength": (len, operator.le, "must contain at most {} characters"),
    "MinValue": (float, operator.ge, "must be a number not less than {}"),
    "MaxValue": (float, operator.le, "must be a number not greater than {}"),
}
# Reads names from the parameter store; unknown names are left out.
ReadParameters = Callable[[list[str]], Mapping[str, str]]


@dataclass(frozen=True)
class ParameterValue:
    """The value of one parameter in a deployment, which is hidden in answers if `no_echo`.

    Attributes:
        submitted: the caller's value or the default; a name, if the type is an SSM type.
        resolved: the value that the parameter store holds under that name; None for other types.
        value: the value of Ref: a string, or a list of strings.
    """

    submitted: str
    resolved: str | None
    value: str | list[str]
    no_echo: bool


def parameter_values(
    definitions: Mapping[str, Mapping[str, Any]],
    submitted: Iterable[Mapping[str, Any]],
    previous: Mapping[str, ParameterValue],
    read_parameters: ReadParameters,
) -> dict[str, ParameterValue]:
    """Gives every parameter its value.

    Raises ApiError if a value is missing, unknown, not allowed, or not in the parameter store.
    """
    texts = _texts(definitions, submitted, previous)
    ssm_names = [
        texts[name]
        for name, definition in definitions.items()
        if _SSM_VALUE.fullmatch(definition["Type"])
    ]
    stored = read_parameters(ssm_names) if ssm_names else {}
    unreadable = [name for name in dict.fromkeys(ssm_names) if name not in stored]
    if unreadable:
        raise invalid(
            f"Unable to fetch parameters [{','.join(unreadable)}] from parameter store for this "
            "account."
        )
    return {
        name: _value(name, definition, texts[name], stored)
        for name, definition in definitions.items()
    }


def _texts(
    definitions: Mapping[str, Mapping[str, Any]],
    submitted: Iterable[Mapping[str, Any]],
    previous: Mapping[str, ParameterValue],
) -> dict[str, str]:
    texts: dict[str, str] = {}
    for entry in submitted:
        name = entry["ParameterKey"]
        if name not in definitions:
            raise invalid(f"Parameters: [{name}] do not exist in the template")
        if entry.get("UsePreviousValue"):
            if name not in previous:
                raise invalid(
                    f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as "
                    "true for a parameter key not in the previous template"
                )
            texts[name] = previous[name].submitted
        elif "ParameterValue" in entry:
            texts[name] = entry["ParameterValue"]
    for name, definition in definitions.items():
        if "Type" not in definition:
            raise invalid(
                "Template format error: Every Parameters object must contain a Type member."
            )
        if name not in texts and "Default" in definition:
            texts[name] = _default(definition["Default"])
    missing = [name for name in definitions if name not in texts]
    if missing:
        raise invalid(f"Parameters: [{', '.join(missing)}] must have values")
    return texts


def _default(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, list) else scalar_text(default)


def _value(
    name: str, definition: Mapping[str, Any], text: str, stored: Mapping[str, str]
) -> ParameterValue:
    type_name: str = definition["Type"]
    ssm = _SSM_VALUE.fullmatch(type_name)
    inner = ssm["inner"] if ssm else type_name
    resolved = stored[text] if ssm else None
    effective = text if resolved is None else resolved
    # The constraints of an SSM parameter apply to its name, not to the value behind it.
    is_list = inner == "CommaDelimitedList" or inner.startswith("List<")
    items = [item.strip() for item in effective.split(",")] if is_list else [effective]
    constrained = [text] if ssm else items
    for item in constrained:
        _check(name, definition, item)
    if inner in ("Number", "List<Number>"):
        for item in items:
            if not re.fullmatch(r"-?\d+(\.\d+)?", item):
                raise invalid(f"Parameter '{name}' must be a number.")
    if is_list and not effective:
        items = []
    return ParameterValue(
        submitted=text,
        resolved=resolved,
        value=items if is_list else effective,
        no_echo=str(definition.get("NoEcho", False)).lower() == "true",
    )


def _check(name: str, definition: Mapping[str, Any], item: str) -> None:
    def refuse(rule: str) -> ApiError:
        described = definition.get("ConstraintDescription")
        if described:
            return invalid(f"Parameter {name} failed to satisfy constraint: {described}")
        return invalid(f"Parameter '{name}' {rule}")

    allowed = definition.get("AllowedValues")
    if allowed is not None and item not in [_default(value) for value in allowed]:
        values = ", ".join(_default(value) for value in allowed)
        raise refuse(f"must be one of AllowedValues [{values}]")
    pattern = definition.get("AllowedPattern")
    if pattern is not None and not re.fullmatch(pattern, item):
        raise refuse(f"must match pattern {pattern}")
    for bound, (measure, fits, rule) in _BOUNDS.items():
        if bound in definition and not fits(measure(item), float(definition[bound])):
            raise refuse(rule.format(definition[bound]))
