"""Reads unquoted YAML values, where readers of YAML 1.1 and of YAML 1.2 differ too.

PyYAML reads YAML 1.1, and editors read YAML 1.2. A value that both read is taken as PyYAML reads
it. `5e-1` is a number in YAML 1.2 alone, and is taken as one. `12:30` is 750 in YAML 1.1 alone, and
is taken as a text. `010` is 8 for one and 10 for the other: such a number is refused.
"""

import re
from decimal import Decimal
from typing import Any, NamedTuple

import yaml

TEXT_TAG = "tag:yaml.org,2002:str"
_INT_TAG = "tag:yaml.org,2002:int"
_FLOAT_TAG = "tag:yaml.org,2002:float"
# PyYAML wants a point before the exponent, and a sign in it.
_EXPONENT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+$")
_LEADING_ZERO = re.compile(r"[-+]?0[0-7_]+")
# The digits that a float holds exactly; a larger whole number stays a float.
_EXACT_DIGITS = 15


class Readings(NamedTuple):
    octal: int
    decimal: int


def resolve_exponents(loader: type[Any]) -> None:
    loader.add_implicit_resolver(_FLOAT_TAG, _EXPONENT, list("-+.0123456789"))


def readings(node: yaml.ScalarNode) -> Readings | None:
    """Returns both readings of an unquoted number, or None where there is only one."""
    if node.tag != _INT_TAG or node.style or not _LEADING_ZERO.fullmatch(node.value):
        return None
    digits = node.value.replace("_", "")
    found = Readings(int(digits, 8), int(digits))
    return found if found.octal != found.decimal else None


class Scalars(yaml.constructor.SafeConstructor):
    """PyYAML's own reading of scalars, without its loader."""

    def read(self, node: yaml.ScalarNode) -> Any:
        """Returns the value of a scalar.

        A whole number with an exponent is an int, so that fields of whole numbers take it.

        Raises:
            yaml.YAMLError, ValueError, KeyError, AttributeError: the value does not fit its tag.
        """
        if node.tag == TEXT_TAG:
            return node.value  # most values; the constructor gives the same, slowly
        if node.tag in (_INT_TAG, _FLOAT_TAG) and not node.style and ":" in node.value:
            return node.value
        value = self.construct_object(node)
        if node.tag == _FLOAT_TAG and _EXPONENT.match(node.value):
            exact = Decimal(node.value)
            if exact.adjusted() <= _EXACT_DIGITS and exact == exact.to_integral_value():
                return int(exact)
        return value
