"""The rights of a person or a pipeline on the buckets, topics and keys of a queue."""

from slipway.config.sections.endpoint import AsyncInference
from slipway.planning.statements import Statement, allow
from slipway.rights.statements import Place
from slipway.s3_address import S3Address


def find_queue(queue: AsyncInference, place: Place) -> list[Statement]:
    """Returns the rights with which preflight looks for everything that a queue needs.

    They let a caller tell an answer that does not exist yet from one that is closed, too.
    """
    buckets = (f"arn:{place.partition}:s3:::{bucket}" for bucket in queue.buckets)
    statements = [allow("FindQueueBuckets", ["s3:ListBucket"], *buckets)]
    if queue.topic_arns:
        statements.append(allow("FindTopics", ["sns:GetTopicAttributes"], *queue.topic_arns))
    if queue.key_arns:
        statements.append(allow("FindQueueKeys", ["kms:DescribeKey"], *queue.key_arns))
    return statements


def use_queue(queue: AsyncInference, place: Place) -> list[Statement]:
    """Returns the rights to put requests, and to read answers and failures."""
    s3 = f"arn:{place.partition}:s3:::"
    requests = S3Address.of(queue.input)
    answers = (f"{s3}{prefix.bucket}/{prefix.key}*" for prefix in queue.written)
    statements = [
        allow("PutRequests", ["s3:PutObject"], f"{s3}{requests.bucket}/{requests.key}*"),
        allow("ReadAnswers", ["s3:GetObject"], *answers),
    ]
    if queue.input_key_arn is not None:
        statements.append(allow("EncryptRequests", ["kms:GenerateDataKey"], queue.input_key_arn))
    if queue.output_key_arn is not None:
        statements.append(allow("DecryptAnswers", ["kms:Decrypt"], queue.output_key_arn))
    return statements
