"""An endpoint in the capacity of a training plan, which does not exist here."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

RESERVED = {
    "CapacityReservationPreference": "capacity-reservations-only",
    "MlReservationArn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search",
}


def test_an_endpoint_tells_its_reservation(account: Any) -> None:
    variant = account.variant(account.model()) | {"CapacityReservationConfig": RESERVED}
    name = account.begin(account.config(variant))
    (described,) = account.settled(name)["ProductionVariants"]
    assert described["CapacityReservationConfig"] == RESERVED
    account.delete(name)


def test_a_pool_has_no_reservation(account: Any) -> None:
    variant = account.variant(account.model()) | {
        "CapacityReservationConfig": RESERVED,
        "InstancePools": [{"InstanceType": "ml.g5.xlarge", "Priority": 1}],
    }
    del variant["InstanceType"]
    with pytest.raises(ClientError, match="which needs the InstanceType of its reservation"):
        account.config(variant)
