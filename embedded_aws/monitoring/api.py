"""CloudWatch's API: moto's, but alarms that cannot be evaluated here are refused.

An operation that moto does not implement is answered with an error that says so.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from moto.cloudwatch import models
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import get_service_model

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.monitoring.definitions import AlarmRefusedError, definition_of
from slipway.embedded_aws.monitoring.metric_data import metric_data
from slipway.embedded_aws.monitoring.states import AlarmStates, state_updates
from slipway.embedded_aws.moto_applications import moto_application
from slipway.embedded_aws.validation import validation_problem

_REFUSED = "ValidationError"
_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def cloudwatch_application(
    states: AlarmStates,
    put_again: Callable[[str, Any, Any], None],
    refresh: Callable[[], None],
) -> Any:
    """Returns the WSGI application that answers CloudWatch's requests.

    `put_again` is told of an alarm that PutMetricAlarm changed: region, moto's old alarm and its
    new one. `refresh` publishes the metrics of endpoints up to now.
    """
    # moto takes two sets of several dimensions for different ones, and would list a metric once for
    # each of its values.
    models.are_dimensions_same = _are_same_dimensions
    context = {"states": states, "put_again": put_again, "refresh": refresh}
    return moto_application("cloudwatch", _CloudWatchApi, **context)


class _CloudWatchApi(CloudWatchResponse):  # type: ignore[misc]  # moto ships no type information
    """One request; the methods are the operations' names in moto's spelling."""

    states: ClassVar[AlarmStates]
    put_again: ClassVar[Callable[[str, Any, Any], None]]
    refresh: ClassVar[Callable[[], None]]

    def call_action(self) -> Any:
        try:
            return super().call_action()
        except NotImplementedError:
            message = (
                f"The embedded AWS does not implement cloudwatch:{self._get_action()}. "
                "docs/embedded-aws/services.md lists what it does."
            )
            return self.serialized(ActionResult(ApiError(_REFUSED, message)))

    def _validated(self, operation: str) -> dict[str, Any]:
        """Returns the parameters, if they are as botocore's model of the operation has them."""
        parameters: dict[str, Any] = self._get_params()
        shape = get_service_model("cloudwatch").operation_model(operation).input_shape
        if (problem := validation_problem(shape, parameters)) is not None:
            raise ApiError(_REFUSED, problem)
        return parameters

    def put_metric_data(self) -> Any:
        """Stores values with moto; those that come without a time have the account's."""
        parameters = self._get_params()
        now = self.states.now()
        data = [{"Timestamp": now, **datum} for datum in parameters.get("MetricData", [])]
        self.cloudwatch_backend.put_metric_data(parameters["Namespace"], data)
        return EmptyResult()

    def get_metric_data(self) -> Any:
        parameters = self._validated("GetMetricData")
        type(self).refresh()
        # A copy, because requests add data meanwhile.
        data = list(self.cloudwatch_backend.get_all_metrics())
        return ActionResult({"MetricDataResults": metric_data(data, parameters)})

    def put_metric_alarm(self) -> Any:
        parameters = self._validated("PutMetricAlarm")
        _check(parameters, self.region)
        alarms, name = self.cloudwatch_backend.alarms, parameters["AlarmName"]
        before = alarms.get(name)
        with self.states.put(alarms, name):
            answer = super().put_metric_alarm()
        if before is not None:
            type(self).put_again(self.region, before, alarms[name])
        return answer

    def describe_alarm_history(self) -> Any:
        """Describes the changes of state; other kinds of items are not kept."""
        parameters = self._validated("DescribeAlarmHistory")
        items = sorted(self._state_updates(parameters), key=lambda item: item["Timestamp"])
        if parameters.get("ScanBy") != "TimestampAscending":
            items.reverse()
        return ActionResult({"AlarmHistoryItems": items[: parameters.get("MaxRecords", 100)]})

    def _state_updates(self, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if parameters.get("HistoryItemType", "StateUpdate") != "StateUpdate":
            return
        name = parameters.get("AlarmName")
        begin, end = (_naive(parameters.get(key)) for key in ("StartDate", "EndDate"))
        for alarm in list(self.cloudwatch_backend.alarms.values()):
            if name in (None, alarm.name):
                for item in state_updates(alarm):
                    after_begin = begin is None or item["Timestamp"] >= begin
                    if after_begin and (end is None or item["Timestamp"] <= end):
                        yield item

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
        name = self._get_param("AlarmName")
        with self.states.set_by_user(self.cloudwatch_backend.alarms, name):
            return super().set_alarm_state()

    def put_dashboard(self) -> Any:
        """Stores a dashboard with moto, and the tags of a new one, which moto does not read."""
        parameters, backend = self._get_params(), self.cloudwatch_backend
        name = parameters["DashboardName"]
        is_new = name not in backend.dashboards
        answer = super().put_dashboard()
        if is_new:
            arn = backend.dashboards[name].arn
            backend.tagger.delete_all_tags_for_resource(arn)
            backend.tagger.tag_resource(arn, parameters.get("Tags", []))
        return answer

    def tag_resource(self) -> Any:
        """Tags an alarm with moto, or a dashboard, whose tags moto refuses."""
        parameters, backend = self._get_params(), self.cloudwatch_backend
        arn = parameters["ResourceARN"]
        if arn not in [each.arn for each in backend.dashboards.values()]:
            return super().tag_resource()
        backend.tagger.tag_resource(arn, parameters["Tags"])
        return EmptyResult()


def _are_same_dimensions(some: Iterable[Any], others: Iterable[Any]) -> bool:
    first, second = ({(each.name, each.value) for each in many} for many in (some, others))
    return first == second


def _check(parameters: dict[str, Any], region: str) -> None:
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


def _naive(moment: datetime | None) -> datetime | None:
    # moto keeps times in UTC, without a time zone.
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)
