"""Whose connections count as copies of the model."""

import os
import socket
import sys
import threading

import pytest

from containers.triton import server_process


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_another_users_connection_is_no_copy_of_the_model(monkeypatch):
    lost = threading.Event()

    def lose():
        lost.set()
        raise EOFError  # Ends the thread that watches.

    def watch_until_lost():
        with pytest.raises(EOFError):
            server_process._watch(listener, lose)

    name = server_process.address(os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        watch = threading.Thread(target=watch_until_lost, daemon=True)
        watch.start()
        with server_process.hold_connection(name[1:]) as stranger:
            stranger.settimeout(5)
            assert stranger.recv(1) == b""
        assert not lost.is_set()

        monkeypatch.setattr(os, "getuid", lambda: own)
        server_process.hold_connection(name[1:]).close()
        assert lost.wait(5)
        watch.join(5)
