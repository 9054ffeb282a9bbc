import socket
import struct
import threading

import numpy as np
import pytest

from containers.neuron.messages import ConnectionLostError, Message, receive, send


@pytest.fixture
def ends():
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(5)
        there.settimeout(5)
        yield here, there


def test_arrays_arrive_as_they_were(ends):
    arrays = {
        "ids": np.arange(12, dtype=np.int64).reshape(3, 4)[:, ::2],
        "logits": np.array([[0.5, -1e30]], np.float32),
        "none": np.zeros((0, 7), np.float32),
        "half": np.array([0.5], np.float16),
    }
    send(ends[0], Message("outputs", "why", arrays))
    received = receive(ends[1])
    assert (received.kind, received.text) == ("outputs", "why")
    assert list(received.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(received.arrays[name], array)
        # Other floats arrive as float32.
        assert received.arrays[name].dtype == (np.int64 if name == "ids" else np.float32)


@pytest.mark.parametrize("rows", [1, 2_000])
def test_a_message_arrives_whole_however_large_it_is(ends, rows):
    ids = np.arange(rows * 128, dtype=np.int64).reshape(rows, 128)
    sending = threading.Thread(target=send, args=(ends[0], Message("inputs", arrays={"ids": ids})))
    sending.start()
    found = receive(ends[1]).arrays["ids"]
    sending.join()
    np.testing.assert_array_equal(found, ids)
    # A runtime would copy an array that is not.
    assert found.flags.aligned


def test_what_follows_a_message_is_refused(ends):
    for _ in range(2):
        send(ends[0], Message("ready"))
    with pytest.raises(ConnectionLostError, match="bytes behind a message"):
        receive(ends[1])


def test_silence_is_a_lost_connection_whose_cause_tells(ends):
    ends[1].settimeout(0.01)
    with pytest.raises(ConnectionLostError) as caught:
        receive(ends[1])
    assert isinstance(caught.value.__cause__, TimeoutError)


def with_header(header, length=None):
    return struct.pack("!Q", len(header) if length is None else length) + header


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (with_header(b"{", 10), "the connection was closed"),
        (with_header(b"{"), "a header that is not JSON"),
        (with_header(b'{"kind": "a", "text": "", "arrays": [["x", "|O", [1]]]}'), r"array of \|O"),
        # Before memory is taken.
        (with_header(b"", 2**50), "a header of 1125899906842624 bytes"),
    ],
)
def test_what_is_no_message_is_a_lost_connection(ends, sent, problem):
    ends[0].sendall(sent)
    ends[0].shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionLostError, match=problem):
        receive(ends[1])
