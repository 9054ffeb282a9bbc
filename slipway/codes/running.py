"""Codes of running endpoints."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.NOT_DEPLOYED,
        "The model is not deployed",
        "The environment has no endpoint of this model.",
        "Run `cdk deploy NAME -c models=NAME -c env=ENV`. `slipway status NAME --env ENV` "
        "shows a failed deployment.",
    ),
    Entry(
        Code.REQUEST_TOO_LARGE,
        "The request is too large",
        "SageMaker limits the body of a realtime request. The message shows the limit.",
        "Send less in one request.",
    ),
    Entry(
        Code.REQUEST_REFUSED,
        "The model refused the request",
        "The container answered with a status of 400 to 499. The request does not match the "
        "model's interface.",
        "Correct the request as the message says. [Requests](../requests.md) describes the "
        "bodies of each container.",
    ),
    Entry(
        Code.MODEL_FAILED,
        "The model failed to answer",
        "The container answered with a status of 500 or above. It is overloaded, timed out, or "
        "has a fault.",
        "Read the container's log with `slipway status NAME --env ENV --lines 100`.",
    ),
    Entry(
        Code.NO_ANSWER,
        "No complete answer arrived",
        "SageMaker did not answer, or the stream of an answer ended early.",
        "Run `slipway status NAME --env ENV` to see the endpoint's state and its log. Then "
        "send the request again.",
    ),
    Entry(
        Code.INVOKE_REFUSED,
        "SageMaker refused the call",
        "SageMaker refused the call before the container got it. The message has AWS's error, "
        "for example missing permissions.",
        "Check the credentials and the endpoint's state with `slipway status NAME --env ENV`.",
    ),
    Entry(
        Code.ROLLBACK_FAILED,
        "The rollback of the stack failed",
        "A deployment failed, and a resource could not be set back. The stack is "
        "`UPDATE_ROLLBACK_FAILED`, and CloudFormation refuses every deployment of it. The endpoint "
        "may still serve.",
        "Remove the cause that `slipway status NAME --env ENV` prints first. Then run `cdk "
        "rollback NAME -c models=NAME -c env=ENV`, or the printed command. [Operations]"
        "(../operations.md#a-rollback-that-failed) says how to skip a resource.",
    ),
    Entry(
        Code.SERVED_DELETED,
        "The endpoint's config or model was deleted",
        "Somebody deleted the endpoint configuration or the model of a live endpoint. The endpoint "
        "still answers. SageMaker refuses to update it, and cannot start another instance.",
        "Make the resource again under the same name, as [Operations]"
        "(../operations.md#a-deleted-endpoint-configuration) shows. Requests go on meanwhile. Or "
        "run `cdk destroy NAME` and `cdk deploy NAME`, which interrupts the service.",
    ),
)
