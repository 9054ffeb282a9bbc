"""CloudWatch's API: moto's, but alarms that cannot be evaluated here are refused.

An operation that moto does not implement is answered with an error that says so.
"""

import functools
from typing import Any, ClassVar

from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult
from moto.core.utils import convert_to_flask_response, get_service_model
from moto.moto_server.werkzeug_app import create_backend_app

from embedded_aws.api import ApiError
from embedded_aws.monitoring.definitions import AlarmRefusedError, definition_of
from embedded_aws.monitoring.states import AlarmStates
from embedded_aws.validation import validation_problem

_REFUSED = "ValidationError"
_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def cloudwatch_application(states: AlarmStates) -> Any:
    """Returns the WSGI application that answers CloudWatch's requests.

    Args:
        states: changes the states of alarms.
    """
    # moto makes an object of the class for every request, so the class carries the context.
    responder: Any = type("CloudWatchApi", (_CloudWatchApi,), {"states": states})
    application = create_backend_app("cloudwatch")
    for endpoint in application.view_functions:
        application.view_functions[endpoint] = convert_to_flask_response(responder.dispatch)
    return application


class _CloudWatchApi(CloudWatchResponse):  # type: ignore[misc]  # moto ships no type information
    """One request; the methods are the operations' names in moto's spelling."""

    states: ClassVar[AlarmStates]

    def call_action(self) -> Any:
        """Answers the request."""
        try:
            return super().call_action()
        except NotImplementedError:
            message = (
                f"The embedded AWS does not implement cloudwatch:{self._get_action()}. "
                "docs/embedded-aws/monitoring.md lists what it does."
            )
            return self.serialized(ActionResult(ApiError(_REFUSED, message)))

    def put_metric_alarm(self) -> Any:
        """Checks an alarm, and stores it with moto."""
        parameters = self._get_params()
        _check(parameters, self.region)
        with self.states.put(self.cloudwatch_backend.alarms, parameters["AlarmName"]):
            return super().put_metric_alarm()

    def describe_alarms(self) -> Any:
        """Describes alarms with moto, and applies the filter that moto ignores beside another."""
        answer = super().describe_alarms()
        state = self._get_param("StateValue")
        if state is None:
            return answer
        matching = {
            kind: [alarm for alarm in alarms if alarm.state_value == state]
            for kind, alarms in answer.result.items()
        }
        return ActionResult(matching)

    def set_alarm_state(self) -> Any:
        """Sets a state with moto, and carries out the actions of the change."""
        name = self._get_param("AlarmName")
        with self.states.set_by_user(self.cloudwatch_backend.alarms, name):
            return super().set_alarm_state()


def _check(parameters: dict[str, Any], region: str) -> None:
    problem = validation_problem(_put_metric_alarm_shape(), parameters)
    if problem is not None:
        raise ApiError(_REFUSED, problem)
    try:
        definition_of(parameters)
    except AlarmRefusedError as error:
        raise ApiError(_REFUSED, str(error)) from None
    for action in (arn for member in _ACTIONS for arn in parameters.get(member) or ()):
        service, its_region = [*action.split(":"), "", "", "", ""][2:4]
        if service == "sns" and its_region != region:
            raise ApiError(
                _REFUSED, f"Invalid region {its_region} specified. Only {region} is supported."
            )


@functools.cache
def _put_metric_alarm_shape() -> Any:
    return get_service_model("cloudwatch").operation_model("PutMetricAlarm").input_shape
