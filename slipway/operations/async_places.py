"""The buckets, topics and keys of an asynchronous endpoint, looked for before a deploy."""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.sections.endpoint import AsyncInference
from slipway.errors import Kind, Problem


def find_places(queue: AsyncInference, access: Access) -> tuple[list[str], list[Problem]]:
    """Looks for everything that a queue needs in the account.

    Returns:
        What was found, and what is missing or unusable.

    Raises:
        ClientError: something could not be examined.
    """
    found: list[str] = []
    problems: list[Problem] = []
    for name, problem in _looks(queue, access):
        if problem is None:
            found.append(name)
        else:
            problems.append(problem)
    return found, problems


def _looks(queue: AsyncInference, access: Access) -> Iterator[tuple[str, Problem | None]]:
    s3, sns, kms = (access.client(service) for service in ("s3", "sns", "kms"))
    for bucket in queue.buckets:
        missing = False
        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError as error:
            missing = _is_missing(error, "404", "NoSuchBucket")
        what = f"bucket {bucket}"
        yield what, _problem(f"the {what} does not exist", "bucket") if missing else None
    for topic in queue.topic_arns:
        missing = False
        try:
            sns.get_topic_attributes(TopicArn=topic)
        except ClientError as error:
            missing = _is_missing(error, "NotFound", "NotFoundException")
        what = f"topic {topic}"
        yield what, _problem(f"the {what} does not exist", "topic") if missing else None
    for key in queue.key_arns:
        what = f"key {key}"
        try:
            state = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
        except ClientError as error:
            _is_missing(error, "NotFoundException")
            yield what, _problem(f"the {what} does not exist", "key")
            continue
        wrong = None if state == "Enabled" else _problem(f"the {what} is in state {state}", "key")
        yield what, wrong


def _is_missing(error: ClientError, *codes: str) -> bool:
    """Returns True for an answer that something does not exist; any other error is raised."""
    if error.response["Error"]["Code"] not in codes:
        raise error
    return True


def _problem(message: str, noun: str) -> Problem:
    remedy = f"Correct `async_inference`, or make the {noun}."
    if "state" in message:
        remedy = "Enable the key, or name another one in `async_inference`."
    return Problem(Code.ASYNC_PLACE, Kind.STATE, message, remedy)
