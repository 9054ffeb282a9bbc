"""The buckets, topics and keys that a config names."""

from collections.abc import Iterator

from slipway.access import Access, existing
from slipway.codes.code import Code
from slipway.config.sections.endpoint import AsyncInference
from slipway.operations.preflight.findings import Finding, wrong
from slipway.planning.plan import DeploymentPlan

_SYMMETRIC = "SYMMETRIC_DEFAULT"
_NO_BUCKET = ("404", "NoSuchBucket")


def find_places(plan: DeploymentPlan, access: Access) -> Iterator[Finding]:
    """Looks for the places of volumes, captured data and a queue."""
    settings = plan.config.endpoint
    if settings.volume_key_arn is not None:
        yield examine_volume_key(settings.volume_key_arn, access)
    if plan.capture is not None and plan.capture.bucket != plan.artifact.bucket:
        yield find_capture_bucket(plan.capture.bucket, access)
    if settings.queue is not None:
        yield from find_queue(settings.queue, access)


def examine_volume_key(arn: str, access: Access) -> Finding:
    """Looks at the key of the storage volumes, which would fail the endpoint after minutes."""
    kms = access.client("kms")
    found = existing(kms.describe_key, "NotFoundException", KeyId=arn)
    if found is None:
        message, remedy = f"the key {arn} does not exist", "Correct `volume_key_arn`."
    elif (state := found["KeyMetadata"]["KeyState"]) != "Enabled":
        message = f"the key {arn} is in state {state}"
        remedy = "Enable the key, or name another one in `volume_key_arn`."
    elif (kind := found["KeyMetadata"]["KeySpec"]) != _SYMMETRIC:
        message = f"the key {arn} is of kind {kind}, and volumes take symmetric keys"
        remedy = "Name a symmetric key in `volume_key_arn`."
    else:
        return f"volume key {arn}"
    return wrong(Code.VOLUME_KEY, message, remedy)


def find_capture_bucket(bucket: str, access: Access) -> Finding:
    """Looks for the bucket of captured requests and answers."""
    if existing(access.client("s3").head_bucket, *_NO_BUCKET, Bucket=bucket) is not None:
        return f"bucket {bucket}"
    return wrong(
        Code.CAPTURE_BUCKET,
        f"the bucket {bucket}, for captured data, does not exist",
        "Correct `data_capture.destination`, or make the bucket.",
    )


def find_queue(queue: AsyncInference, access: Access) -> Iterator[Finding]:
    """Looks for the buckets, topics and keys of an asynchronous endpoint."""
    s3, sns, kms = (access.client(service) for service in ("s3", "sns", "kms"))
    for bucket in queue.buckets:
        found = existing(s3.head_bucket, *_NO_BUCKET, Bucket=bucket)
        yield _of_queue("bucket", bucket, is_missing=found is None)
    for topic in queue.topic_arns:
        missing = ("NotFound", "NotFoundException")
        found = existing(sns.get_topic_attributes, *missing, TopicArn=topic)
        yield _of_queue("topic", topic, is_missing=found is None)
    for key in queue.key_arns:
        found = existing(kms.describe_key, "NotFoundException", KeyId=key)
        state = "Enabled" if found is None else found["KeyMetadata"]["KeyState"]
        if state == "Enabled":
            yield _of_queue("key", key, is_missing=found is None)
        else:
            remedy = "Enable the key, or name another one in `async_inference`."
            yield wrong(Code.ASYNC_PLACE, f"the key {key} is in state {state}", remedy)


def _of_queue(noun: str, name: str, *, is_missing: bool) -> Finding:
    if not is_missing:
        return f"{noun} {name}"
    remedy = f"Correct `async_inference`, or make the {noun}."
    return wrong(Code.ASYNC_PLACE, f"the {noun} {name} does not exist", remedy)
