"""`make buildx` with stand-ins for Go and apt. tests/images has the real programs."""

from pathlib import Path

import pytest

from tools.buildx import BUILDX, REGISTRY, main


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "docker").write_text("#!/bin/sh\n")
    (folder / "docker").chmod(0o755)
    (folder / "go").write_text('#!/bin/sh\n[ "$1" = mod ] || touch "$4"\n')
    (folder / "go").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}


def test_buildx_and_a_registry_are_provided(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin" / REGISTRY).write_text("#!/bin/sh\n")
    (tmp_path / "bin" / REGISTRY).chmod(0o755)
    assert main(environ) == 0
    built = BUILDX.place(environ)
    assert built == tmp_path / ".cache/slipway/docker-buildx" / BUILDX.version / "docker-buildx"
    assert built.is_file()
    assert f"buildx {BUILDX.version} is in {built.parent}" in capsys.readouterr().out


def test_podman_has_no_buildx(
    environ: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in (REGISTRY, "podman"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setattr(
        "slipway.embedded_aws.containers.opening.PODMAN", str(tmp_path / "bin/podman")
    )
    monkeypatch.setattr("slipway.embedded_aws.containers.opening._RUN", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main({**environ, "SLIPWAY_CONTAINER_ENGINE": "podman"}) == 69
    assert capsys.readouterr().err == "buildx is Docker's; the engine here is podman.\n"


def test_a_user_without_root_is_told_what_to_install(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(
        "shutil.which", lambda name, **_: None if name == REGISTRY else f"/usr/bin/{name}"
    )
    assert main(environ) == 69
    assert f"apt-get install --yes --no-install-recommends {REGISTRY}" in capsys.readouterr().err
