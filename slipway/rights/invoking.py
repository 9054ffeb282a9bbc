"""The rights of a caller of an endpoint."""

from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import Statement, allow
from slipway.rights.asynchronous import use_queue
from slipway.rights.statements import Place


def invoke_statements(plan: DeploymentPlan, place: Place) -> list[Statement]:
    """Asks the endpoint; an asynchronous one with the objects of requests and answers."""
    endpoint = place.arn("sagemaker", f"endpoint/{plan.endpoint_name}")
    if plan.config.endpoint.queue is None:
        actions = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        return [allow("Invoke", actions, endpoint, *component_arns(plan, place))]
    return [
        allow("Invoke", ["sagemaker:InvokeEndpointAsync"], endpoint),
        *use_queue(plan.config.endpoint.queue, place),
    ]


def component_arns(plan: DeploymentPlan, place: Place) -> list[str]:
    """Returns the ARN of the plan's inference component; none in another mode.

    Requests name the component beside the endpoint. Whether SageMaker checks it then is not
    documented, so the policy allows both by name.
    """
    if plan.component is None:
        return []
    return [place.arn("sagemaker", f"inference-component/{plan.component.name}")]
