"""Chooses the copy of an inference component that answers a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.embedded_aws.hosting.components.component import Adapter, Component
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint, Entered
from slipway.embedded_aws.hosting.fleets.running_variant import AdapterError
from slipway.embedded_aws.hosting.invocations.errors import model_error, validation_error
from slipway.embedded_aws.hosting.resources.records import Records
from slipway.embedded_aws.hosting.telemetry.metrics import MetricPublisher
from slipway.embedded_aws.identity import ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


_HEADER = "HTTP_X_AMZN_SAGEMAKER_INFERENCE_COMPONENT"
_PREFIX_ID = "HTTP_X_AMZN_SAGEMAKER_PREFIX_AWARE_ID"
_TARGET_VARIANT = "HTTP_X_AMZN_SAGEMAKER_TARGET_VARIANT"
# As users quote it: https://github.com/garystafford/llm-langchain-sql-demo/issues/1.
_REQUIRED = (
    "Inference Component Name header is required for endpoints to which you plan to deploy "
    "inference components. Please include Inference Component Name header or consider using "
    "SageMaker models."
)
# As LiteLLM quotes it in its tests.
_NOT_ALLOWED = (
    "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy "
    "inference components. Please remove the Inference Component Name header and try again."
)
# Quoted in AWS's walk-through of scaling to zero, and by many users.
_NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)


def enter_component(
    endpoint: Endpoint | None,
    environ: WSGIEnvironment,
    components: Records[Component],
    metrics: MetricPublisher,
    body: bytes,
) -> Entered | None:
    """Chooses the copy of a request and counts the request in.

    Returns None if the endpoint hosts models and the request names no component. Raises
    `InvocationError` if the request names a component that cannot answer, or none although the
    endpoint hosts components.
    """
    name = environ.get(_HEADER)
    fleet = None if endpoint is None else endpoint.serving
    if endpoint is None or fleet is None:
        return None
    if not fleet.groups:
        if name is None:
            return None
        raise validation_error(_NOT_ALLOWED)
    if name is None:
        raise validation_error(_REQUIRED)
    component = components.find(endpoint.region, name)
    if component is None or component.endpoint is not endpoint:
        # AWS's words are not public.
        raise validation_error(
            f"Inference Component {name} of endpoint {endpoint.name} of account {ACCOUNT_ID} not "
            "found."
        )
    target = environ.get(_TARGET_VARIANT, component.variant_name)
    if target != component.variant_name:
        # AWS's words are not public.
        raise validation_error(f"Inference Component {name} is not on variant {target}.")
    prefix_id = environ.get(_PREFIX_ID, "")
    if isinstance(component, Adapter):
        return _enter_adapter(component, endpoint, metrics, body, prefix_id)
    copy = component.enter(body, prefix_id)
    if copy is None:
        metrics.record_values(component.owner, {"NoCapacityInvocationFailures": 1.0})
        raise validation_error(_NO_CAPACITY)
    return Entered(copy, len(component.copies), fleet.metrics, name)


def _enter_adapter(
    adapter: Adapter, endpoint: Endpoint, metrics: MetricPublisher, body: bytes, prefix_id: str
) -> Entered:
    files, fleet = adapter.enter_files(), endpoint.serving
    if files is None or fleet is None:
        # AWS's words are not public.
        raise validation_error(f"Adapter {adapter.name} is {adapter.status}, and answers nothing.")
    copy = adapter.base.enter(body, prefix_id)
    if copy is None:
        files.leave()
        metrics.record_values(adapter.owner, {"NoCapacityInvocationFailures": 1.0})
        raise validation_error(_NO_CAPACITY)
    try:
        copy.load_adapter(files.identifier, files.url)
    except AdapterError as error:
        copy.leave()
        files.leave()
        raise model_error(0, str(error), endpoint.region, endpoint.name) from error
    return Entered(copy, len(adapter.base.copies), fleet.metrics, adapter.name, adapter=files)
