"""Publishing for TensorRT: the accuracy of quantised weights."""

from typing import Any

from pydantic import TypeAdapter

from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.planning.deployment import Deployment
from slipway.planning.lock import Accuracy, EncoderAccuracy, int8_finding
from slipway.publishing.objects import read_text
from slipway.publishing.packaging import ACCURACY_FILE, Inspection, Packaging
from slipway.s3_address import S3Address

LEAST_EQUAL_TOKENS = 0.9
"""Share of greedy tokens in which int8 has to agree with fp32."""
MOST_RELATIVE_DIFFERENCE = 0.2
"""Largest difference of an int8 encoder's outputs, as a share of the fp32 outputs' norm."""


class TensorRTPackaging(Packaging):
    """A TensorRT artifact has no package; what int8 costs in accuracy is checked."""

    def inspection(self, deployment: Deployment) -> Inspection | None:
        return _accuracy if deployment.dtype == "int8" else None


def _accuracy(client: Any, _job: str, uri: str) -> Accuracy:
    text = read_text(client, S3Address.of(uri), ACCURACY_FILE)
    found: Accuracy = TypeAdapter(Accuracy).validate_json(text)
    if isinstance(found, EncoderAccuracy):
        is_refused = found.relative_difference > MOST_RELATIVE_DIFFERENCE
        bound = f"at most {MOST_RELATIVE_DIFFERENCE:.0%} is accepted"
    else:
        is_refused = found.equal_tokens < LEAST_EQUAL_TOKENS * found.tokens
        bound = f"{LEAST_EQUAL_TOKENS:.0%} of the tokens are needed"
    if is_refused:
        raise UserError.of(
            Code.INT8_ACCURACY,
            f"in int8 {int8_finding(found.model_dump())}; {bound}",
            "Write `dtype: fp32`, and publish again.",
            field=("serving", "dtype"),
        )
    return found
