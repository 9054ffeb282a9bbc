"""`make triton` where it cannot install: it says why, and leaves nothing."""

import platform

from tools.triton.__main__ import main


def test_a_machine_that_nvidia_has_no_server_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert main({"XDG_CACHE_HOME": str(tmp_path)}) == 69
    assert "for Linux on x86-64 alone" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
