"""Publishing for TensorRT: the accuracy of quantised weights."""

from typing import Any

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.planning.deployment import Deployment
from slipway.planning.lock import Accuracy
from slipway.publishing.objects import ObjectPrefix, read_text
from slipway.publishing.packaging import ACCURACY_FILE, Inspection, Packaging

LEAST_EQUAL_TOKENS = 0.9
"""Share of greedy tokens in which int8 has to agree with fp32."""


class TensorRTPackaging(Packaging):
    """A TensorRT artifact has no package; what int8 costs in accuracy is checked."""

    def inspection(self, deployment: Deployment) -> Inspection | None:
        """Returns the check of a quantised model."""
        return _accuracy if deployment.dtype == "int8" else None


def _accuracy(client: Any, _job: str, uri: str) -> Accuracy:
    found = Accuracy.model_validate_json(read_text(client, ObjectPrefix(uri), ACCURACY_FILE))
    if found.equal_tokens < LEAST_EQUAL_TOKENS * found.tokens:
        raise UserError.of(
            Code.INT8_ACCURACY,
            f"in int8 the model chooses {found.equal_tokens} of {found.tokens} tokens as in fp32, "
            f"and {LEAST_EQUAL_TOKENS:.0%} are needed; a logit differs by up to "
            f"{found.largest_logit_difference:g}",
            "Write `dtype: fp32`, and publish again.",
            field=("serving", "dtype"),
        )
    return found
