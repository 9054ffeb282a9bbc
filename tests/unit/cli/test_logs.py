"""What `slipway logs` shows of a line, and how far back it looks."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.operations.log_text import readable
from slipway.operations.logs import find_groups


def test_a_terminal_gets_no_control_character_of_a_log():
    # A title, a screen cleared, the same in eight bits, and a line that hides the one before it.
    text = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x9b2J a\rb\tc"
    shown = r"red \x1b]0;title\x07 \x1b[2J \x9b2J a\rb" + "\tc"
    assert readable(text) == shown
    line = json.dumps({"level": "error", "event": "failed", "message": text, "id": "\x1b[2J"})
    assert readable(line) == rf"error failed: {shown} id=\x1b[2J"
    for other in ('["\\u001b"]', '"\\u001b"', "3", "null"):
        assert readable(other) == other


def test_no_length_is_longer_than_logs_are_kept(tmp_path, monkeypatch, slipway_command):
    monkeypatch.chdir(tmp_path)
    for length in ("999999d", "3654d", "100000h", "-1m", "1", "m", "1.5h", "¹m"):
        code, _, error = slipway_command("logs", "tiny", f"--since={length}")
        told = f"`--since {length}` is no length of time of at most 3653 days [SW409]"
        assert (code, told in error) == (1, True), error
    # A right one goes on to the project, which is not there.
    for length in ("0m", "3653d", "90s"):
        error = slipway_command.refused("logs", "tiny", f"--since={length}")
        assert "no length" not in error
        assert "no Slipway project here" in error


class Groups:
    """CloudWatch Logs with one group; those of other kinds may not be read."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def filter_log_events(self, *, logGroupName: str, limit: int) -> dict[str, Any]:  # noqa: N803
        if logGroupName not in self._names:
            error = {"Code": "AccessDeniedException", "Message": f"not yours, {limit}"}
            raise ClientError({"Error": error}, "FilterLogEvents")
        return {"events": []}


def test_groups_of_another_mode_may_be_denied():
    name = "/aws/sagemaker/Endpoints/tiny-local"
    assert find_groups(Groups(name), "tiny-local") == [name]
    with pytest.raises(ClientError, match="AccessDenied"):
        find_groups(Groups(), "tiny-local")
