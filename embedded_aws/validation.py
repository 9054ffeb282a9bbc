"""Checks a parsed request against botocore's shapes, in AWS's words.

botocore's own validator runs in the client and checks types, required members and minimum lengths
only. Enumerations, patterns and maxima are left to the service, so they are checked here.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

# Sources of the wording: error messages of SageMaker's and CloudFormation's APIs, which share it.
_CONSTRAINT = "Value '{value}' at '{path}' failed to satisfy constraint: Member must {rule}"


def validation_problem(shape: Any, value: Any) -> str | None:
    """Returns a message about every constraint of an input's shape that the value breaks, or None.

    It has each member's path, for example `productionVariants.1.member.instanceType`. The shape is
    None for an operation that takes no input.
    """
    problems = [] if shape is None else list(_check(shape, value, ""))
    if not problems:
        return None
    noun = "error" if len(problems) == 1 else "errors"
    return f"{len(problems)} validation {noun} detected: " + "; ".join(problems)


def _check(shape: Any, value: Any, path: str) -> Iterator[str]:
    kind = shape.type_name
    if kind == "structure":
        for name in shape.required_members:
            if value.get(name) is None:
                member_path = _join(path, name)
                yield _CONSTRAINT.format(value="null", path=member_path, rule="not be null")
        for name, member in value.items():
            if name in shape.members and member is not None:
                yield from _check(shape.members[name], member, _join(path, name))
    elif kind == "list":
        yield from _check_bounds(shape, "length", len(value), value, path)
        for index, member in enumerate(value, start=1):
            yield from _check(shape.member, member, f"{path}.{index}.member")
    elif kind == "map":
        yield from _check_bounds(shape, "length", len(value), value, path)
        for key, member in value.items():
            yield from _check(shape.key, key, path)
            yield from _check(shape.value, member, f"{path}.{key}.member")
    elif kind == "string":
        yield from _check_string(shape, value, path)
    elif kind in ("integer", "long", "float", "double"):
        yield from _check_bounds(shape, "value", value, value, path)


def _check_string(shape: Any, value: str, path: str) -> Iterator[str]:
    allowed = shape.enum
    if allowed and value not in allowed:
        rule = f"satisfy enum value set: [{', '.join(allowed)}]"
        yield _CONSTRAINT.format(value=value, path=path, rule=rule)
    yield from _check_bounds(shape, "length", len(value), value, path)
    pattern = shape.metadata.get("pattern")
    if pattern and not _compiled(pattern).fullmatch(value):
        rule = f"satisfy regular expression pattern: {pattern}"
        yield _CONSTRAINT.format(value=value, path=path, rule=rule)


def _check_bounds(shape: Any, quantity: str, amount: float, value: Any, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and amount < low:
        rule = f"have {quantity} greater than or equal to {low}"
        yield _CONSTRAINT.format(value=value, path=path, rule=rule)
    if high is not None and amount > high:
        rule = f"have {quantity} less than or equal to {high}"
        yield _CONSTRAINT.format(value=value, path=path, rule=rule)


def _join(path: str, name: str) -> str:
    """Returns the path with the member appended in AWS's lower camel case."""
    member = name[:1].lower() + name[1:]
    return f"{path}.{member}" if path else member


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    # The models' patterns are Java's: \p{Z} and friends have no equivalent in `re`.
    classes = {
        r"\p{L}": r"\w",
        r"\p{Z}": r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
        r"\p{N}": r"\d",
        r"\p{P}": r"!-/:-@\[-`{-~",
        r"\p{M}": "",
        r"\p{S}": r"$+<=>^`|~",
        r"\p{IsLetter}": r"\w",
        r"[\p{Print}]": r"[ -~]",
        r"\p{Print}": r"[ -~]",
        # In Java a pair of surrogates is one character.
        r"\uD800\uDC00-\uDBFF\uDFFF": r"\U00010000-\U0010FFFF",
        r"\p{ASCII}*": r"[\x00-\x7f]*",
        r"\z": r"\Z",
    }
    for java, python in classes.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern)
