"""`make images`: the engine that it chooses, its Pythons, and its refusals. Programs are stand-ins.

tests/images has a real engine and the real images.
"""

import os
import sys
from pathlib import Path

import pytest

from slipway.embedded_aws.containers import opening
from slipway.embedded_aws.containers.engine import EngineError
from slipway.image_sources import IMAGE_SOURCES
from tests.support.waiting import eventually
from tests.tools.conftest import program
from tools.images.__main__ import main
from tools.images.catalogue import catalogue
from tools.images.engine import open_engine, recorded
from tools.images.stand_in import find_python
from tools.installs import UnavailableError

HERE = sys.version_info[:2]


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


def test_the_machines_engine_comes_first(environ, tmp_path):
    docker = program(tmp_path / "bin", "docker", '[ "$1" = info ] || echo "$DOCKER_BUILDKIT $@"')
    with open_engine(environ) as engine:
        assert (engine.name, engine.command) == ("docker", (str(docker),))
        assert engine.answer("version") == "1 version"


@pytest.fixture
def without_docker(environ, tmp_path, monkeypatch):
    """A machine whose docker has no daemon, and that has no dockerd."""
    program(tmp_path / "bin", "docker", "exit 1")
    monkeypatch.setattr(opening, "_DAEMON", str(tmp_path / "dockerd"))
    monkeypatch.setattr(opening, "_CLIENT", str(tmp_path / "bin/docker"))
    monkeypatch.setattr(opening, "PODMAN", str(tmp_path / "podman"))
    monkeypatch.setattr(opening, "_RUN", tmp_path / "run")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "run").mkdir()
    return environ


def test_no_root_is_told_what_to_install(without_docker, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name, **_: str(tmp_path / "bin" / name))
    assert main(["neuron"], without_docker) == os.EX_UNAVAILABLE
    told = capsys.readouterr().err
    assert told.startswith("There is no container engine here:\n- docker: `docker info` ")
    assert "\n- dockerd: only root can start it.\n" in told
    assert "apt-get install --yes --no-install-recommends podman runc" in told
    assert recorded(without_docker) == set()


def test_podman_takes_the_place_of_a_daemon_that_does_not_start(without_docker, tmp_path):
    program(tmp_path, "dockerd", "echo mount of overlay denied; exit 3")
    chosen = {**without_docker, "SLIPWAY_CONTAINER_ENGINE": "dockerd"}
    with pytest.raises(UnavailableError, match="mount of overlay denied"), open_engine(chosen):
        pass
    program(tmp_path, "podman", 'shift 4; [ "$1" = info ] || echo "$@"')
    with open_engine(without_docker) as engine:
        assert engine.name == "podman"
        assert engine.answer("version") == "version"


def test_an_unknown_kind_of_engine_is_refused(without_docker):
    chosen = {**without_docker, "SLIPWAY_CONTAINER_ENGINE": "rkt"}
    with pytest.raises(UnavailableError) as refused, open_engine(chosen):
        pass
    assert str(refused.value) == (
        "SLIPWAY_CONTAINER_ENGINE is 'rkt'; it can be one of docker, dockerd, podman."
    )


def test_a_daemon_of_its_own_ends_after_the_last_command(without_docker, tmp_path):
    # It is ready when its file is there, and says so when it was asked to end.
    ended = tmp_path / "ended"
    ready = tmp_path / "ready"
    program(
        tmp_path,
        "dockerd",
        f'trap "rm {ready}; echo ended >> {ended}; exit 0" TERM\n'
        f"touch {ready}\nwhile :; do sleep 0.05; done",
    )
    program(tmp_path / "bin", "docker", f'[ -n "$DOCKER_HOST" ] && [ -e {ready} ]')
    with open_engine(without_docker) as engine:
        assert engine.name == "a dockerd of Debian's"
        assert engine.variables["DOCKER_HOST"].startswith("unix:///")
        with open_engine(without_docker) as same:
            assert same == engine
        assert not ended.exists()
    eventually(ended.exists)
    # Another command starts another daemon.
    with open_engine(without_docker):
        pass
    eventually(lambda: ended.read_text() == "ended\nended\n")


def test_a_failed_command_is_quoted(environ, tmp_path):
    program(tmp_path / "bin", "docker", '[ "$1" = info ] && exit 0; echo no space left; exit 9')
    with open_engine(environ) as engine:
        with pytest.raises(EngineError, match="`docker pull x` ended with 9:\nno space left"):
            engine.answer("pull", "x")
        lines: list[str] = []
        with pytest.raises(EngineError, match="failed:\nno space left"):
            engine.build(tmp_path, tell=lines.append)
    assert lines == ["no space left"]


def test_every_family_has_images():
    images = list(catalogue())
    assert {image.family for image in images} == set(IMAGE_SOURCES)
    assert len({image.name for image in images}) == len(images)
    assert all(image.dockerfile.is_file() for image in images)
    managed = {image.family: image.managed_python for image in images}
    assert managed["tensorrt"] == managed["neuron"] == "3.12.16"
    assert managed["lmi"] is None


def test_images_are_left_out_by_name_or_fail(environ, tmp_path, capsys, monkeypatch):
    program(tmp_path / "bin", "docker", '[ "$1" = info ] && exit 0; echo denied; exit 1')

    def unavailable(*_: object) -> str:
        raise UnavailableError("no Python 3.10 here")

    monkeypatch.setattr("tools.images.stand_in.make", unavailable)
    assert main(["neuron"], environ) == 0
    assert "1 of 1: neuron\nleft out: no Python 3.10 here" in capsys.readouterr().err

    monkeypatch.setattr("tools.images.stand_in.make", lambda *_: "slipway-stand-in/x")
    assert main(["neuron"], environ) == 1
    assert "failed: `docker build " in capsys.readouterr().err
    assert recorded(environ) == set()


@pytest.mark.parametrize(
    ("options", "pulls", "base"),
    [
        ([], True, "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference-neuron:"),
        ([], False, "slipway-stand-in/pytorch-inference-neuron:"),
        (["--stand-ins"], True, "slipway-stand-in/pytorch-inference-neuron:"),
    ],
)
def test_the_base_is_pulled_where_that_is_wanted_and_possible(
    environ, tmp_path, capsys, monkeypatch, options, pulls, base
):
    calls = tmp_path / "calls"
    script = f"""
echo "$@" >> {calls}
case $1 in
info | build) ;;
pull) exit {0 if pulls else 1} ;;
image) [ "$3" = --format ] && echo 1000000 ;;
esac
"""
    program(tmp_path / "bin", "docker", script)
    monkeypatch.setattr(
        "tools.images.stand_in.make",
        lambda _, image, *__: f"slipway-stand-in/{image.base.partition('/')[2]}",
    )
    assert main(["neuron", *options], environ) == 0
    assert f"  its base: {base}" in capsys.readouterr().err
    (build,) = [line for line in calls.read_text().splitlines() if line.startswith("build ")]
    assert f"--build-arg BASE_IMAGE={base}" in build
    assert recorded(environ) == {"neuron"}


def test_a_python_is_found_by_its_version_and_runs_elsewhere(tmp_path):
    version = (HERE[0], HERE[1])
    prefix = Path(sys.base_prefix)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / f"python{version[0]}.{version[1]}").symlink_to(sys.executable)
    environ = {"PATH": str(folder), "HOME": str(tmp_path)}
    if prefix == Path("/usr"):
        with pytest.raises(UnavailableError):
            find_python(version, environ)
        return
    assert find_python(version, environ) == prefix


def test_an_unknown_image_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["tensorflow"])
    assert ended.value.code == 2
    assert "no image is called tensorflow; there are tensorrt-10.4, " in capsys.readouterr().err


def test_a_missing_python_is_named(tmp_path):
    with pytest.raises(UnavailableError, match=r"no Python 3\.9 in a folder of its own"):
        find_python((3, 9), {"PATH": str(tmp_path), "HOME": str(tmp_path)})
