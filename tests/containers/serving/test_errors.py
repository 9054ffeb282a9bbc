import pytest

from containers.serving.errors import ERROR_KINDS, InvalidRequestError, ServingError, classify
from containers.serving.json_requests import parse_json_object
from tests.support.messages import message_of


def test_every_serving_error_has_a_row_in_the_table():
    assert set(ERROR_KINDS) == set(ServingError.__subclasses__())
    assert {kind.code: kind.status for kind in ERROR_KINDS.values()} == {
        "invalid_request": 400,
        "request_timeout": 408,
        "request_too_large": 413,
        "unsupported_media_type": 415,
        "model_failure": 500,
        "overloaded": 503,
        "not_ready": 503,
        "timeout": 504,
    }


def test_an_unexpected_exception_leaks_nothing():
    kind, message = classify(KeyError("/opt/ml/model/secret"))
    assert (kind.status, kind.code) == (500, "internal_error")
    assert message == "The server failed to answer; its log holds the request id."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not valid JSON: Expecting value at line 1 column 1."),
        (b'{"a": 1,}', "The body is not valid JSON: "),
        (b"\xff", "The body is not UTF-8: the byte at offset 0 is invalid."),
        (b"[1]", "The body must be a JSON object, not an array."),
        (b"null", "The body must be a JSON object, not null."),
        (b'{"a": 1, "a": 2}', 'The body\'s JSON repeats the key "a".'),
        (b'{"a": NaN}', "The body is not valid JSON: NaN is not a JSON value."),
        (b'{"a": ' + b"9" * 5000 + b"}", "The body holds a number with too many digits."),
        (b"[" * 200_000, "The body's JSON is nested too deeply."),
    ],
)
def test_malformed_bodies(body, message):
    assert message_of(InvalidRequestError, parse_json_object, body).startswith(message)
