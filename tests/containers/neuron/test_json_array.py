"""Long arrays, written in pieces."""

import json

import pytest

from containers.encoders.tasks.task import json_array


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 250])
def test_it_is_the_json_of_the_whole(length):
    values = [{"word": "Zoë", "start": number} for number in range(length)]
    assert json_array(values) == json.dumps(values, ensure_ascii=False)


def test_no_piece_is_long(monkeypatch):
    lengths = []
    dumps = json.dumps

    def counted(values, *, ensure_ascii):
        lengths.append(len(values))
        return dumps(values, ensure_ascii=ensure_ascii)

    monkeypatch.setattr(json, "dumps", counted)
    json_array(list(range(250)))
    assert lengths == [100, 100, 50]
