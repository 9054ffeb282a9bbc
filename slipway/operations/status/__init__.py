"""What an endpoint really serves, beside its stack and its files: `slipway status`."""

from slipway.operations.status.of_model import find_model_status as find_model_status
from slipway.operations.status.report import Status as Status
from slipway.operations.status.report import find_status as find_status
