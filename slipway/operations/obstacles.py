"""What stands in the way of a deployment, in the same words for `slipway status` and preflight."""

from slipway.codes.code import Code
from slipway.errors import Kind, Problem
from slipway.operations.deployment import Deployment

# What happened, and what to do before the stack is deleted.
_DELETABLE = {
    "CREATE_FAILED": ("nothing was removed after the failure", "Read the log"),
    "ROLLBACK_FAILED": ("the first deployment could not be undone", "Remove the cause"),
    "DELETE_FAILED": ("the stack is half deleted", "Remove the cause"),
    # The CDK CLI deletes it unless it is protected.
    "ROLLBACK_COMPLETE": ("the stack has to be deleted first, and is protected", "Read the log"),
}


def find_obstacle(
    name: str, stack: Deployment | None, *, has_endpoint: bool | None, gone: str | None
) -> Problem | None:
    """Returns why a stack at rest takes no deployment, with the way out; None where it does.

    `has_endpoint` is None for the copies on another's endpoint. `gone` is what of the endpoint's
    configuration and model was deleted.
    """
    status = "REVIEW_IN_PROGRESS" if stack is None else stack.status
    option = f"--stack-name {name}"
    if stack is None or status == "REVIEW_IN_PROGRESS":
        code, message = Code.NO_STACK, f"there is no stack of the endpoint {name}, and a new one "
        message += "cannot make an endpoint that is there"
        remedy = f"Delete it with `aws sagemaker delete-endpoint --endpoint-name {name}` when "
        remedy += "nobody uses it, and what `slipway leftovers` lists. Then deploy."
        return Problem(code, Kind.STATE, message, remedy) if has_endpoint else None
    code, stuck = Code.STACK_AT_REST, " ".join(stack.stuck)
    if status == "UPDATE_ROLLBACK_FAILED":
        code = Code.ROLLBACK_FAILED
        message = "the rollback failed, and nothing can be deployed before it is finished"
        remedy = (
            f"Remove the cause, then run `aws cloudformation continue-update-rollback {option}`. "
            f"If that is not possible, add `--resources-to-skip {stuck}`, which leaves the "
            "resource as it is."
        )
    elif status == "UPDATE_FAILED":
        message = "the failed update was not undone"
        remedy = f"Run `aws cloudformation rollback-stack {option}`, then deploy."
    elif status in _DELETABLE and (stack.is_protected or status != "ROLLBACK_COMPLETE"):
        message, first = _DELETABLE[status]
        command = "update-termination-protection --no-enable-termination-protection"
        unprotect = f"`aws cloudformation {command} {option}` and " if stack.is_protected else ""
        remedy = f"{first}, then run {unprotect}`aws cloudformation delete-stack {option}`."
        if status == "DELETE_FAILED" and stuck:
            remedy += f" If the cause stays, add `--retain-resources {stuck}`."
    elif status.endswith("_COMPLETE") and status != "ROLLBACK_COMPLETE" and has_endpoint is False:
        code = Code.ENDPOINT_DELETED
        message = f"the endpoint {name} was deleted, and an update of its stack fails"
        remedy = "Destroy the stack and deploy it."
    elif gone is not None and not stack.in_progress:
        code = Code.SERVED_DELETED
        message = f"its {gone} was deleted, so that updates of the endpoint and new instances can "
        message += "fail"
        remedy = "Make it again under this name, or destroy the stack and deploy it."
    else:
        return None
    return Problem(code, Kind.STATE, message, remedy)


def told(problem: Problem) -> str:
    """Returns an obstacle as one text."""
    return f"{problem.message}. {problem.remedy.rstrip('.')} [{problem.code}]"
