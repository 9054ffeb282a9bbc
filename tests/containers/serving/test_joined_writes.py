"""Writes of one turn of the event loop are sent together, in order and completely."""

import asyncio
import socket
import struct
import sys

import pytest

from containers.serving.joined_writes import JoinedWrites
from tests.containers.serving.harness import connect, posted
from tests.support.servers import EchoPredictor, running_server

pytestmark = pytest.mark.anyio

# tcpi_data_segs_in of Linux's struct tcp_info.
DATA_SEGMENTS_OFFSET_BYTES = 152


class Recorded(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.said = []
        self.closed = False

    def write(self, data):
        self.said.append(bytes(data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.said.append("close")

    def abort(self):
        self.said.append("abort")

    def get_write_buffer_size(self):
        return 7


@pytest.fixture
async def both():
    recorded = Recorded()
    return recorded, JoinedWrites(recorded, asyncio.get_running_loop())


async def test_writes_of_one_turn_are_one(both):
    recorded, joined = both
    joined.write(b"head ")
    joined.write(b"body")
    assert recorded.said == []
    assert joined.get_write_buffer_size() == len(b"head body") + 7
    await asyncio.sleep(0)
    assert recorded.said == [b"head body"]
    assert joined.get_write_buffer_size() == 7
    # Much data is sent at once.
    joined.write(b"x" * 100_000)
    await asyncio.sleep(0)
    assert recorded.said == [b"head body", b"x" * 100_000]


@pytest.mark.parametrize(("end", "said"), [("close", [b"last", "close"]), ("abort", ["abort"])])
async def test_an_end_sends_the_rest_or_nothing(both, end, said):
    recorded, joined = both
    joined.write(b"last")
    getattr(joined, end)()
    await asyncio.sleep(0)
    assert recorded.said == said


async def test_nothing_is_written_to_a_closed_connection(both):
    recorded, joined = both
    joined.write(b"too late")
    recorded.closed = True
    await asyncio.sleep(0)
    assert recorded.said == []


@pytest.mark.skipif(sys.platform != "linux", reason="the packets are counted by Linux")
async def test_an_answer_is_one_packet():
    async with running_server(EchoPredictor()) as running:
        reader, writer = await connect(running)
        writer.write(posted())
        await reader.readuntil(b"[1]")
        connection = writer.get_extra_info("socket")
        information = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        assert struct.unpack_from("I", information, DATA_SEGMENTS_OFFSET_BYTES) == (1,)
        writer.close()
