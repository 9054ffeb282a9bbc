"""An error that S3 answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """An error of S3; https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.

    Attributes:
        status: the status line, such as `400 Bad Request`.
        code: S3's name of the error.
        message: S3's words.
    """

    status: str
    code: str
    message: str
