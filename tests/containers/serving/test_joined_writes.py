"""Writes of one turn of the event loop are sent together, in order and completely."""

import asyncio
import asyncio.selector_events
from typing import Any

import pytest

from containers.serving.joined_writes import JoinedWrites
from tests.support.servers import EchoPredictor, running_server

pytestmark = pytest.mark.anyio


class Recorded(asyncio.Transport):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Any] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.said.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.said.append("close")
        self.closed = True

    def abort(self) -> None:
        self.said.append("abort")
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 7


@pytest.fixture
async def both() -> tuple[Recorded, JoinedWrites]:
    recorded = Recorded()
    return recorded, JoinedWrites(recorded, asyncio.get_running_loop())


async def test_writes_of_one_turn_are_one(both: tuple[Recorded, JoinedWrites]) -> None:
    recorded, joined = both
    joined.write(b"head ")
    joined.writelines([b"body", b" end"])
    assert recorded.said == []
    assert joined.get_write_buffer_size() == len(b"head body end") + 7
    await asyncio.sleep(0)
    assert recorded.said == [b"head body end"]
    assert joined.get_write_buffer_size() == 7
    joined.write(b"next")
    await asyncio.sleep(0)
    assert recorded.said == [b"head body end", b"next"]


async def test_data_is_as_it_was_when_it_was_written(both: tuple[Recorded, JoinedWrites]) -> None:
    recorded, joined = both
    buffer = bytearray(b"before")
    joined.write(buffer)
    buffer[:] = b"after!"
    await asyncio.sleep(0)
    assert recorded.said == [b"before"]


async def test_much_data_is_sent_at_once(both: tuple[Recorded, JoinedWrites]) -> None:
    recorded, joined = both
    joined.write(b"head ")
    joined.write(b"x" * 100_000)
    assert recorded.said == [b"head " + b"x" * 100_000]
    await asyncio.sleep(0)
    assert len(recorded.said) == 1


async def test_an_end_sends_the_rest_first(both: tuple[Recorded, JoinedWrites]) -> None:
    recorded, joined = both
    joined.write(b"last words")
    joined.close()
    await asyncio.sleep(0)
    assert recorded.said == [b"last words", "close"]


async def test_an_abort_sends_nothing_more(both: tuple[Recorded, JoinedWrites]) -> None:
    recorded, joined = both
    joined.write(b"lost")
    joined.abort()
    await asyncio.sleep(0)
    assert recorded.said == ["abort"]


async def test_nothing_is_written_to_a_closed_connection(
    both: tuple[Recorded, JoinedWrites],
) -> None:
    recorded, joined = both
    joined.write(b"too late")
    recorded.closed = True
    await asyncio.sleep(0)
    assert recorded.said == []


async def test_an_answer_is_sent_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    write = asyncio.selector_events._SelectorSocketTransport.write  # type: ignore[attr-defined]

    def record(transport: Any, data: bytes) -> None:
        if bytes(data[:8]) == b"HTTP/1.1":
            sent.append(bytes(data))
        write(transport, data)

    async with running_server(EchoPredictor()) as running:
        monkeypatch.setattr(asyncio.selector_events._SelectorSocketTransport, "write", record)  # type: ignore[attr-defined]
        assert (await running.post("all of it")).json() == ["all of it"]
    [answer] = sent
    assert answer.endswith(b'["all of it"]')
