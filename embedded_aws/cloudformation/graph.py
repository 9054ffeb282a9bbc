"""Finds the resources that a value refers to, and the order in which resources can be created."""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

# ${Name} and ${Name.Attribute} are references; ${!Literal} is text.
SUB_VARIABLE = re.compile(r"\$\{(?P<name>[^!${}][^${}]*)\}")


def entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields every key with its value, of every mapping in a value, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from entries(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key, item
            yield from entries(item)


def referenced_names(value: Any) -> Iterator[str]:
    """Yields every parameter, pseudo parameter and resource that a value names, in order."""
    if isinstance(value, list):
        for item in value:
            yield from referenced_names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref" and len(value) == 1 and isinstance(item, str):
                yield item
            elif key == "Fn::GetAtt" and len(value) == 1:
                yield get_att_target(item)[0]
                if isinstance(item, list):
                    yield from referenced_names(item[1:])
            elif key == "Fn::Sub" and len(value) == 1:
                yield from _sub_names(item)
            else:
                yield from referenced_names(item)


def get_att_target(argument: Any) -> tuple[str, Any]:
    """Splits the argument of Fn::GetAtt into the logical id and the attribute's name."""
    if isinstance(argument, str):
        logical_id, _, attribute = argument.partition(".")
        return logical_id, attribute
    if isinstance(argument, list) and len(argument) >= 2 and isinstance(argument[0], str):
        attribute = argument[1] if len(argument) == 2 else ".".join(map(str, argument[1:]))
        return argument[0], attribute
    return "", argument


def creation_order(dependencies: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Orders logical ids so that each follows the ids that it depends on.

    Among ids that could come next, the order is that of the mapping, which is the template's.
    """
    sorter = TopologicalSorter(dependencies)
    try:
        sorter.prepare()
    except CycleError:
        raise CircularDependencyError(_in_circles(dependencies)) from None
    position = {logical_id: index for index, logical_id in enumerate(dependencies)}
    order: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready.extend(sorter.get_ready())
        ready.sort(key=lambda logical_id: position.get(logical_id, len(position)))
        following = ready.pop(0)
        order.append(following)
        sorter.done(following)
    return tuple(order)


class CircularDependencyError(Exception):
    """Resources depend on each other in a circle."""

    def __init__(self, logical_ids: tuple[str, ...]) -> None:
        super().__init__(", ".join(logical_ids))
        self.logical_ids = logical_ids


def _sub_names(argument: Any) -> Iterator[str]:
    text, variables = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])
    for match in SUB_VARIABLE.finditer(text):
        name = match["name"].strip()
        if name not in variables:
            yield name.partition(".")[0]
    yield from referenced_names(variables)


def _in_circles(dependencies: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Returns the ids on circles, without ids that only lead into or out of one."""
    remaining = set(dependencies)
    while True:
        needed = {dep for name in remaining for dep in dependencies[name]}
        peeled = {
            name for name in remaining if not (dependencies[name] & remaining) or name not in needed
        }
        if not peeled:
            return tuple(name for name in dependencies if name in remaining)
        remaining -= peeled
