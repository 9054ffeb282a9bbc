"""The key of an endpoint's storage volumes, compared with what the account has."""

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem

_SYMMETRIC = "SYMMETRIC_DEFAULT"


def examine_key(key_arn: str, access: Access) -> Problem | None:
    """Returns the problem with a key that would fail the endpoint after minutes; None without one.

    Args:
        key_arn: the field `volume_key_arn`.
        access: clients of the account.

    Raises:
        ClientError: the account could not be examined.
    """
    kms = access.client("kms")
    try:
        key = kms.describe_key(KeyId=key_arn)["KeyMetadata"]
    except kms.exceptions.NotFoundException:
        return _problem(f"the key {key_arn} does not exist", "Correct `volume_key_arn`.")
    if key["KeyState"] != "Enabled":
        return _problem(
            f"the key {key_arn} is in state {key['KeyState']}",
            "Enable the key, or name another one in `volume_key_arn`.",
        )
    if key["KeySpec"] != _SYMMETRIC:
        return _problem(
            f"the key {key_arn} is of kind {key['KeySpec']}, and volumes take symmetric keys",
            "Name a symmetric key in `volume_key_arn`.",
        )
    return None


def _problem(message: str, remedy: str) -> Problem:
    return Problem(Code.VOLUME_KEY, Kind.STATE, message, remedy)
