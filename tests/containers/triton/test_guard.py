"""The check of the JSON that Triton's parser gets. `test_server.py` has the guard's server."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.serving.errors import InvalidRequestError, NotReadyError
from containers.triton.guard import _Triton, check_json


def levels(text):
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


def is_refused(document):
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
def test_a_document_is_refused_by_its_depth(depth, texts, in_objects):
    value = [*texts, {}, []]
    for _ in range(depth):
        value = {texts[0] if texts else "a": value} if in_objects else [*texts, value]
    document = json.dumps(value)
    assert is_refused(document.encode()) == (levels(document) > 64)


@pytest.mark.parametrize(
    "document", [b"[" * 65, b'{"a":' * 65, b"[1," * 65 + b"\xff", b'"\\\\"' + b"[" * 65]
)
def test_what_the_parser_would_enter_before_it_fails_is_counted(document):
    assert is_refused(document)


@pytest.mark.parametrize("document", [b"", b'"', b"]" * 99, b"[]" * 999, b'"' + b"[" * 99])
def test_what_is_no_json_and_not_deep_is_left_to_triton(document):
    assert not is_refused(document)


def test_many_objects_are_refused():
    assert not is_refused(b"[" + b"{}," * 1024)
    assert is_refused(b"[" + b"{}," * 1025)


@pytest.mark.anyio
async def test_a_connection_that_triton_closed_is_not_asked_again():
    closed = []

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()
        closed.append(asyncio.ensure_future(writer.wait_closed()))

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        triton = _Triton(server.sockets[0].getsockname()[1])
        assert (await triton.ask("GET", "/"))[0] == 200
        (reader, _writer) = triton._idle[0]
        await asyncio.wait_for(reader.read(), 30)
        assert (await triton.ask("GET", "/"))[0] == 200
        await asyncio.gather(*closed)
        await triton.close()


@pytest.mark.anyio
async def test_an_answer_without_an_end_of_its_headers_is_none():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 40_000)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        with pytest.raises(NotReadyError):
            await _Triton(server.sockets[0].getsockname()[1]).ask("GET", "/")
