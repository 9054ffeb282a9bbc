"""Where a notebook's call says that the weights are."""

from slipway.importing.call import Call
from slipway.importing.custom.drafts import MODEL_VARIABLE
from slipway.importing.draft import printable
from slipway.importing.weights import WeightsPlace, named_weights

_REVISION = "HF_REVISION"


def weights_place(call: Call) -> WeightsPlace:
    """Returns where a call says that the weights are: in S3, or on the Hub.

    Args:
        call: the arguments.
    """
    named = {
        "model_data": call.model_data,
        MODEL_VARIABLE: call.environment.get(MODEL_VARIABLE),
        "model": call.model,
    }
    for name, value in named.items():
        if value and not value.startswith("/opt/ml/"):
            return named_weights(
                f"{name}={printable(value)}", value, call.environment.get(_REVISION)
            )
    return WeightsPlace("", missing="no argument names the weights")
