"""Rules about captured requests and answers."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.deployment import Deployment, problem

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
    capture = deployment.config.endpoint.data_capture
    if capture is not None and capture.key_arn is not None and capture.destination is None:
        yield problem(
            Code.DATA_CAPTURE,
            "`key_arn` has no effect without `destination`: the artifact key encrypts what lies in "
            "the artifact bucket",
            "Add `destination`, or leave `key_arn` out.",
            (*_SECTION, "key_arn"),
        )
