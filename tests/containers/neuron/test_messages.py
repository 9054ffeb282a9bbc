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
    }
    send(ends[0], Message("outputs", "why", arrays))
    received = receive(ends[1])
    assert (received.kind, received.text) == ("outputs", "why")
    assert list(received.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(received.arrays[name], array)
        assert received.arrays[name].dtype == array.dtype


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


def test_other_floats_arrive_as_float32(ends):
    send(ends[0], Message("outputs", arrays={"half": np.array([0.5], np.float16)}))
    assert receive(ends[1]).arrays["half"].dtype == np.float32


def test_an_end_in_the_middle_is_a_lost_connection(ends):
    ends[0].sendall(struct.pack("!Q", 10) + b"{")
    ends[0].shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionLostError, match="the connection was closed"):
        receive(ends[1])


def test_silence_is_a_lost_connection_whose_cause_tells(ends):
    ends[1].settimeout(0.01)
    with pytest.raises(ConnectionLostError) as caught:
        receive(ends[1])
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize(
    "header",
    [b"{", b'{"kind": "outputs", "text": "", "arrays": [["x", "|O", [1]]]}'],
)
def test_what_is_no_message_is_a_lost_connection(ends, header):
    ends[0].sendall(struct.pack("!Q", len(header)) + header)
    with pytest.raises(ConnectionLostError):
        receive(ends[1])


def test_a_length_beyond_reason_is_refused_before_memory_is_taken(ends):
    ends[0].sendall(struct.pack("!Q", 2**50))
    with pytest.raises(ConnectionLostError, match="a header of 1125899906842624 bytes"):
        receive(ends[1])
