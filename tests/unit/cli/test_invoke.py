"""`slipway invoke` before anything is sent: the request and its JSON."""

import pytest

from slipway.cli.invoke import invoke
from slipway.errors import UserError

REMEDY = (
    """Give one: `slipway invoke tiny '{"inputs": "The"}'`, or """
    "`slipway invoke tiny --file request.json`."
)


@pytest.mark.parametrize(
    ("body", "file", "message", "remedy"),
    [
        (None, None, "no request is given", REMEDY),
        ("{}", "request.json", "two requests are given", REMEDY),
        (None, "missing.json", "missing.json cannot be read: No such file or directory",
         "Name a file with the request."),
    ],
)  # fmt: skip
def test_a_request_comes_from_one_place(body, file, message, remedy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        invoke("tiny", body, file)
    (problem,) = caught.value.problems
    assert (problem.message, problem.remedy) == (message, remedy)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"inputs": "The}', "request.json:1:12: not JSON: Unterminated string starting at"),
        (b'{\n  "inputs": 1,\n}', "request.json:2:14: not JSON: Illegal trailing comma"),
        (b"", "request.json:1:1: not JSON: Expecting value"),
        (b'{"inputs": "\xff"}', "request.json: not JSON: byte 12 is not utf-8"),
    ],
)
def test_what_is_not_json_is_located(content, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_bytes(content)
    with pytest.raises(UserError) as caught:
        invoke("tiny", None, "request.json")
    report = str(caught.value)
    # Python 3.13 says more exactly what a comma before a brace is.
    expected = place.partition("Illegal")[0]
    assert expected in report or "request.json:3:1: not JSON: Expecting property name" in report
    assert "Send valid JSON, or name another `--content-type`." in report


def test_other_content_is_not_looked_into(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        invoke("tiny", "not json", None, content_type="text/plain")
    assert "no Slipway project here" in str(caught.value)
