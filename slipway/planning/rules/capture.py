"""Rules about captured requests and answers."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.keys import is_of_region
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, Rule, problem

_SECTION = ("endpoint", "data_capture")


def captured_data_has_an_end(deployment: Deployment) -> Iterator[Problem]:
    """Requests may hold personal data, so the artifact bucket does not keep them for ever."""
    capture, environment = deployment.config.endpoint.data_capture, deployment.environment
    if capture is None or capture.destination is not None:
        return
    if environment.captured_data_days is None:
        yield problem(
            Code.DATA_CAPTURE,
            f"environment `{environment.name}` does not say how long captured data stays in the "
            "artifact bucket",
            "Set `captured_data_days` in environments.yaml, or `destination` to a prefix of "
            "another bucket.",
            _SECTION,
        )


def capture_key_has_a_destination(deployment: Deployment) -> Iterator[Problem]:
    """Refuses a key in the artifact bucket, where captured data has the artifact key."""
    capture, environment = deployment.config.endpoint.data_capture, deployment.environment
    if capture is None or capture.key_arn is None:
        return
    field = (*_SECTION, "key_arn")
    if capture.destination is None:
        yield problem(
            Code.DATA_CAPTURE,
            "`key_arn` has no effect without `destination`: the artifact key encrypts what lies in "
            "the artifact bucket",
            "Add `destination`, or leave `key_arn` out.",
            field,
        )
    if not is_of_region(capture.key_arn, environment.region):
        yield problem(
            Code.KEY_ELSEWHERE,
            f"the key is in {capture.key_arn.split(':')[3]}, and the endpoint of "
            f"`{environment.name}` in {environment.region}",
            f"Name a key of {environment.region} under `environments: {environment.name}:`.",
            field,
        )


RULES: tuple[Rule, ...] = (captured_data_has_an_end, capture_key_has_a_destination)
