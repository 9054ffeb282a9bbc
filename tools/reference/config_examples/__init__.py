"""The example under each heading of the reference pages.

The word behind `yaml` tells the tests how to check an example; `tests/support/pages.py` lists them.
Each example is therefore a file, or a part of a shipped config, that Slipway really takes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A block of YAML.

    Args:
        label: what a test holds it against: `model`, `part of NAME` or `environments`.
        text: without the fences.
    """

    label: str
    text: str
