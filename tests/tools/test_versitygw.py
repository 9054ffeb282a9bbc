"""`make versitygw` with a stand-in for Go: what it builds, and where it cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.versitygw import VERSITYGW, main


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Returns the variables of a machine whose Go does what a shell script says."""

    def environment(script: str) -> dict[str, str]:
        go = tmp_path / "bin" / "go"
        go.parent.mkdir(exist_ok=True)
        go.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        go.chmod(0o755)
        return {"PATH": f"{go.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    return environment


def test_it_is_built_once_from_the_pinned_modules(
    environment: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    variables = environment(
        '[ "$1" = mod ] || { [ "$GOFLAGS $GOTOOLCHAIN" = "-mod=readonly local" ] && touch "$4"; }'
    )
    assert [main(variables), main(variables)] == [0, 0]
    built = VERSITYGW.place(variables)
    assert built == tmp_path / "cache/slipway/versitygw" / VERSITYGW.version / "versitygw"
    assert [path.name for path in built.parent.iterdir()] == ["versitygw"]
    download, build = (tmp_path / "calls").read_text().splitlines()
    assert download == "mod download"
    assert build.startswith("build -trimpath -o")
    # What `make bench-publish` times is optimised.
    assert build.index("-gcflags=all=-N -l") < build.index("-gcflags=github.com/versity/...=")


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("echo no route to host >&2; exit 1", 69, "no route to host"),
        ("echo SECURITY ERROR: checksum mismatch >&2; exit 1", 1, "checksum mismatch"),
        ('[ "$1" = mod ] || { echo undefined: x >&2; exit 1; }', 1, "undefined: x"),
    ],
)
def test_what_fails_leaves_no_server(
    environment: Callable[[str], dict[str, str]],
    capsys: pytest.CaptureFixture[str],
    script: str,
    status: int,
    message: str,
) -> None:
    variables = environment(script)
    assert main(variables) == status
    assert message in capsys.readouterr().err
    built = VERSITYGW.place(variables)
    assert built is not None
    assert not built.exists()


def test_a_machine_without_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"PATH": str(tmp_path), "HOME": str(tmp_path)}) == 69
    assert "Go is not on the PATH" in capsys.readouterr().err
