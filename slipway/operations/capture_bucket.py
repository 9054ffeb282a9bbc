"""The bucket of captured requests and answers, looked for before a deploy."""

from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import Kind, Problem


def find_bucket(bucket: str, access: Access) -> Problem | None:
    """Returns the problem of a bucket that does not exist; None if it does.

    Args:
        bucket: of the field `destination`.
        access: clients of the account.

    Raises:
        ClientError: the bucket could not be examined.
    """
    try:
        access.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
        return Problem(
            Code.CAPTURE_BUCKET,
            Kind.STATE,
            f"the bucket {bucket}, for captured data, does not exist",
            "Correct `data_capture.destination`, or make the bucket.",
        )
    return None
