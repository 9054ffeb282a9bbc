"""The errors of SageMaker's data plane, in its words."""

from collections.abc import Mapping
from typing import Any

from slipway.embedded_aws.identity import ACCOUNT_ID

_MESSAGE_CHARACTERS = 2048  # botocore's maximum of Message and OriginalMessage


class InvocationError(Exception):
    """A request without a successful answer; an error of SageMaker's front end has no `code`."""

    def __init__(self, status: int, code: str | None, body: Mapping[str, Any]) -> None:
        super().__init__(body)
        self.status = status
        self.code = code
        self.body = body


def validation_error(message: str) -> InvocationError:
    return InvocationError(400, "ValidationError", {"Message": message})


def endpoint_not_found(name: str) -> InvocationError:
    return validation_error(f"Endpoint {name} of account {ACCOUNT_ID} not found.")


def model_error(status: int, text: str, region: str, name: str) -> InvocationError:
    group = f"/aws/sagemaker/Endpoints/{name}"
    kind = "client" if 400 <= status < 500 else "server"
    where = (
        f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}"
        f"#logEventViewer:group={group} in account {ACCOUNT_ID} for more information."
    )
    frame = f'Received {kind} error ({status}) from primary with message "". See {where}'
    quoted = text[: max(_MESSAGE_CHARACTERS - len(frame), 0)]
    return InvocationError(
        424,
        "ModelError",
        {
            "Message": frame.replace('message "', f'message "{quoted}', 1),
            "OriginalStatusCode": status,
            "OriginalMessage": text[:_MESSAGE_CHARACTERS],
            "LogStreamArn": f"arn:aws:logs:{region}:{ACCOUNT_ID}:log-group:{group}",
        },
    )
