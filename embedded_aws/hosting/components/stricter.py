"""The words of AWS's refusals that are made only on request.

https://github.com/stdapi-ai/stdapi.ai/issues/43 (2026-08-27, read 2026-11-24) quotes both. AWS
documents 0 as the minimum of both numbers.
"""

from collections.abc import Mapping

from embedded_aws.api import ApiError
from embedded_aws.hosting.records import VALIDATION
from embedded_aws.stricter import StricterRule

_WORDS: Mapping[StricterRule, str] = {
    StricterRule.COPY_COUNT_0: "Inference components copy count an integer larger than 0",
    StricterRule.MIN_INSTANCE_COUNT_0: (
        "Min instance count needs to be greater than 0 for enabled managed instance scaling"
    ),
}


def refusal(rule: StricterRule) -> ApiError:
    """Returns the error with AWS's words."""
    return ApiError(VALIDATION, _WORDS[rule])
