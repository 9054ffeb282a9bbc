"""`make versitygw` and `make buildx`: Go and apt are stand-ins; tests/images has the real ones."""

import pytest

from tests.tools.conftest import program
from tools.go_programs import BUILDX, REGISTRY, VERSITYGW, main


@pytest.fixture
def environment(tmp_path):
    """Returns the variables of a machine whose Go does what a shell script says."""

    def environment(script: str) -> dict[str, str]:
        go = program(tmp_path / "bin", "go", f'echo "$@" >> {tmp_path}/calls\n{script}')
        return {"PATH": f"{go.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    return environment


def test_it_is_built_once_from_the_pinned_modules(environment, tmp_path):
    variables = environment(
        '[ "$1" = mod ] || { [ "$GOFLAGS $GOTOOLCHAIN" = "-mod=readonly local" ] && touch "$4"; }'
    )
    assert [main("versitygw", variables), main("versitygw", variables)] == [0, 0]
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
def test_what_fails_leaves_no_server(environment, capsys, script, status, message):
    variables = environment(script)
    assert main("versitygw", variables) == status
    assert message in capsys.readouterr().err
    built = VERSITYGW.place(variables)
    assert built is not None
    assert not built.exists()


def test_a_machine_without_go(tmp_path, capsys):
    assert main("versitygw", {"PATH": str(tmp_path), "HOME": str(tmp_path)}) == 69
    assert "Go is not on the PATH" in capsys.readouterr().err


@pytest.fixture
def environ(tmp_path):
    program(tmp_path / "bin", "docker")
    program(tmp_path / "bin", "go", '[ "$1" = mod ] || touch "$4"')
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}


def test_buildx_and_a_registry_are_provided(environ, tmp_path, capsys):
    program(tmp_path / "bin", REGISTRY)
    assert main("buildx", environ) == 0
    built = BUILDX.place(environ)
    assert built == tmp_path / ".cache/slipway/docker-buildx" / BUILDX.version / "docker-buildx"
    assert built.is_file()
    assert f"buildx {BUILDX.version} is in {built.parent}" in capsys.readouterr().out


def test_podman_has_no_buildx(environ, tmp_path, monkeypatch, capsys):
    for name in (REGISTRY, "podman"):
        program(tmp_path / "bin", name)
    monkeypatch.setattr(
        "slipway.embedded_aws.containers.opening.PODMAN", str(tmp_path / "bin/podman")
    )
    monkeypatch.setattr("slipway.embedded_aws.containers.opening._RUN", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main("buildx", {**environ, "SLIPWAY_CONTAINER_ENGINE": "podman"}) == 69
    assert capsys.readouterr().err == "buildx is Docker's; the engine here is podman.\n"


def test_a_user_without_root_is_told_what_to_install(environ, monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(
        "shutil.which", lambda name, **_: None if name == REGISTRY else f"/usr/bin/{name}"
    )
    assert main("buildx", environ) == 69
    assert f"apt-get install --yes --no-install-recommends {REGISTRY}" in capsys.readouterr().err
