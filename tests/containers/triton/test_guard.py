"""The check of the JSON that Triton's parser gets. `test_server.py` has the guard's server."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.serving.errors import InvalidRequestError
from containers.triton.guard import check_json


def levels(text: str) -> int:
    """Returns the depth of valid JSON, read a character at a time."""
    deepest = depth = 0
    in_text = escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif in_text:
            escaped, in_text = character == "\\", character != '"'
        else:
            in_text = character == '"'
            depth += (character in "[{") - (character in "]}")
            deepest = max(deepest, depth)
    return deepest


def is_refused(document: bytes) -> bool:
    try:
        check_json(document)
    except InvalidRequestError:
        return True
    return False


@given(
    st.integers(0, 80),
    st.lists(st.text(st.sampled_from('[]{}"\\,: a'), max_size=12), max_size=6),
    st.booleans(),
)
def test_a_document_is_refused_by_its_depth(depth: int, texts: list[str], in_objects: bool) -> None:
    value: object = [*texts, {}, []]
    for _ in range(depth):
        value = {texts[0] if texts else "a": value} if in_objects else [*texts, value]
    document = json.dumps(value)
    assert is_refused(document.encode()) == (levels(document) > 64)


@pytest.mark.parametrize(
    "document", [b"[" * 65, b'{"a":' * 65, b"[1," * 65 + b"\xff", b'"\\\\"' + b"[" * 65]
)
def test_what_the_parser_would_enter_before_it_fails_is_counted(document: bytes) -> None:
    assert is_refused(document)


@pytest.mark.parametrize("document", [b"", b'"', b"]" * 99, b"[]" * 999, b'"' + b"[" * 99])
def test_what_is_no_json_and_not_deep_is_left_to_triton(document: bytes) -> None:
    assert not is_refused(document)


def test_many_objects_are_refused() -> None:
    assert not is_refused(b"[" + b"{}," * 1024)
    assert is_refused(b"[" + b"{}," * 1025)
