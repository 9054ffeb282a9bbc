"""Refuses settings that are not emulated: a setting without effect would mislead."""

from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.api import ValidationError


def refuse(
    parameters: Mapping[str, Any], unsupported: Mapping[str, str], *, page: str = "hosting"
) -> None:
    """Raises `ValidationError` if there is an unsupported member: it says what each would need."""
    present = [name for name in unsupported if parameters.get(name)]
    if present:
        listed = ", ".join(f"{name} ({unsupported[name]})" for name in present)
        raise ValidationError(
            f"The embedded AWS does not emulate {listed}. "
            f"docs/embedded-aws/{page}.md lists what it does."
        )
