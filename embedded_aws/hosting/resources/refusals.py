"""Refuses settings that are not emulated, and on request what some accounts of AWS refuse.

A setting without effect would mislead.
"""

from collections.abc import Mapping
from typing import Any

from embedded_aws.api import ValidationError
from embedded_aws.reported_refusals import ReportedRefusal

# https://github.com/stdapi-ai/stdapi.ai/issues/43 (2026-08-27, read 2026-11-24) quotes both. AWS
# documents 0 as the minimum of both numbers.
_WORDS: Mapping[ReportedRefusal, str] = {
    ReportedRefusal.COPY_COUNT_0: "Inference components copy count an integer larger than 0",
    ReportedRefusal.MIN_INSTANCE_COUNT_0: (
        "Min instance count needs to be greater than 0 for enabled managed instance scaling"
    ),
}


def refuse(
    parameters: Mapping[str, Any], unsupported: Mapping[str, str], *, page: str = "hosting"
) -> None:
    """Raises if any unsupported member is present.

    Args:
        parameters: a structure of a request.
        unsupported: maps a member to what it would need.
        page: page of docs/embedded-aws that lists what is emulated.

    Raises:
        ValidationError: the message names every such member.
    """
    present = [name for name in unsupported if parameters.get(name)]
    if present:
        listed = ", ".join(f"{name} ({unsupported[name]})" for name in present)
        raise ValidationError(
            f"The embedded AWS does not emulate {listed}. "
            f"docs/embedded-aws/{page}.md lists what it does.",
        )


def refusal(rule: ReportedRefusal) -> ValidationError:
    """Returns the error of a rule that is made only on request, with AWS's words."""
    return ValidationError(_WORDS[rule])
