"""Refusing what is not emulated: a setting that had no effect here would mislead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedded_aws.api import ApiError
from embedded_aws.hosting.records import VALIDATION


def refuse(
    parameters: Mapping[str, Any], unsupported: Mapping[str, str], *, page: str = "hosting"
) -> None:
    """Raises when any of the members is there.

    Args:
        parameters: a structure of a request.
        unsupported: member name to what it would need.
        page: of docs/embedded-aws that says what is emulated.

    Raises:
        ApiError: names every such member.
    """
    present = [name for name in unsupported if parameters.get(name)]
    if present:
        listed = ", ".join(f"{name} ({unsupported[name]})" for name in present)
        raise ApiError(
            VALIDATION,
            f"The embedded AWS does not emulate {listed}. "
            f"docs/embedded-aws/{page}.md lists what it does.",
        )
