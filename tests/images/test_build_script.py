"""What CodeBuild runs, with the real buildx and a real registry in place of ECR.

The command `aws` is a stand-in that asks that registry. The engine here has no bridge for a build's
network, so `docker` adds an option to what the script says.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.embedded_aws.containers.engine import Engine
from slipway.image_sources import copy_image_files
from tests.support.page_runs import free_port
from tests.support.starts import count_start
from tests.support.waiting import eventually
from tools.go_programs import BUILDX, REGISTRY
from tools.images import stand_in
from tools.images.catalogue import ROOT, catalogue

pytestmark = [
    pytest.mark.buildx,
    pytest.mark.timeout(900),
]

SCRIPT = ROOT / "stacks/build_scripts/build_image.sh"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
EVERY_KIND = ", ".join(
    [
        MANIFEST,
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    ]
)
DOCKER = """\
#!/bin/sh
if [ "$1 $2" = "buildx build" ]; then shift 2; set -- buildx build --network host "$@"; fi
exec {client} "$@"
"""
AWS = """\
#!{python}
import sys, urllib.error, urllib.request
assert sys.argv[1:3] == ["ecr", "batch-get-image"], sys.argv
name = sys.argv[sys.argv.index("--repository-name") + 1]
tag = sys.argv[sys.argv.index("--image-ids") + 1].removeprefix("imageTag=")
address = f"http://{registry}/v2/{{name}}/manifests/{{tag}}"
request = urllib.request.Request(address, headers={{"Accept": "{kinds}"}})
try:
    with urllib.request.urlopen(request):
        print(1)
except urllib.error.HTTPError as error:
    assert error.code == 404, error
    print(0)
except urllib.error.URLError:
    # ECR still answered; the registry goes away before the push.
    print(0)
"""


class Registry:
    """A registry on loopback."""

    def __init__(self, folder: Path) -> None:
        count_start("server")
        self.address = f"127.0.0.1:{free_port()}"
        storage = {"filesystem": {"rootdirectory": str(folder / "storage")}}
        settings = {"version": 0.1, "storage": storage, "http": {"addr": self.address}}
        # JSON is YAML.
        (folder / "registry.yml").write_text(json.dumps(settings), "utf-8")
        with (folder / "registry.log").open("w") as log:
            self.process = subprocess.Popen(
                [REGISTRY, "serve", str(folder / "registry.yml")], stdout=log, stderr=log
            )
        eventually(self.answers)

    def answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address}/v2/", trust_env=False).status_code == 200
        return False

    def manifest(self, name: str, tag: str) -> httpx.Response:
        return httpx.get(
            f"http://{self.address}/v2/{name}/manifests/{tag}",
            headers={"Accept": EVERY_KIND},
            trust_env=False,
        )

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with contextlib.closing(Registry(tmp_path_factory.mktemp("registry"))) as registry:
        yield registry


@pytest.fixture(scope="module")
def base(engine: Engine) -> str:
    (image,) = [each for each in catalogue() if each.name == "lmi-0.27.0"]
    return stand_in.make(engine, image, (), lambda _: None)


class Build:
    """Runs the script in a folder with the LMI image's sources."""

    def __init__(self, folder: Path, engine: Engine, base: str) -> None:
        self.folder = folder
        self._engine = engine
        self._base = base
        copy_image_files(ROOT, "lmi", folder)
        plugin = folder / "config" / "cli-plugins" / "docker-buildx"
        plugin.parent.mkdir(parents=True)
        built = BUILDX.place(os.environ)
        assert built is not None
        plugin.symlink_to(built)

    def run(self, registry: Registry, tag: str, **variables: str) -> Any:
        programs = self.folder / "programs"
        shutil.rmtree(programs, ignore_errors=True)
        programs.mkdir()
        aws = AWS.format(python=sys.executable, registry=registry.address, kinds=EVERY_KIND)
        docker = DOCKER.format(client=self._engine.command[0])
        for name, text in (("aws", aws), ("docker", docker)):
            (programs / name).write_text(text, "utf-8")
            (programs / name).chmod(0o755)
        return subprocess.run(
            ["bash", str(SCRIPT)],
            cwd=self.folder,
            env={
                **self._engine.environment(),
                "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
                "DOCKER_CONFIG": str(self.folder / "config"),
                "IMAGE_URI": f"{registry.address}/slipway/lmi:{tag}",
                "BASE_IMAGE": self._base,
                "TARGET": "serving",
                "DOCKERFILE": "containers/lmi/Dockerfile",
                **variables,
            },
            capture_output=True,
            text=True,
        )


@pytest.fixture
def build(tmp_path: Path, engine: Engine, base: str) -> Build:
    return Build(tmp_path, engine, base)


def test_the_pushed_image_is_one_that_sagemaker_takes(
    build: Build, registry: Registry, engine: Engine
) -> None:
    done = build.run(registry, "first")
    assert done.returncode == 0, done.stderr
    found = registry.manifest("slipway/lmi", "first")
    document = found.json()
    # Neither an index nor a media type of OCI.
    assert found.headers["content-type"] == document["mediaType"] == MANIFEST
    types = {layer["mediaType"] for layer in document["layers"]}
    assert types == {"application/vnd.docker.image.rootfs.diff.tar.gzip"}
    # The registry has the image that is here.
    address = f"{registry.address}/slipway/lmi"
    digest = found.headers["docker-content-digest"]
    engine.answer("pull", "--quiet", f"{address}@{digest}")
    form = "{{.Id}} {{.Architecture}} {{.Os}}"
    told = engine.answer("image", "inspect", "--format", form, f"{address}@{digest}")
    assert told == f"{document['config']['digest']} amd64 linux"

    # The same tag again, with other sources: tags are immutable.
    (build.folder / "containers/lmi/handler/slipway_handler.py").write_text("changed = True\n")
    again = build.run(registry, "first")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == f"{address}:first is there already: nothing to build.\n"
    assert registry.manifest("slipway/lmi", "first").headers["docker-content-digest"] == digest

    # Another tag has the other sources.
    assert build.run(registry, "second").returncode == 0
    other = registry.manifest("slipway/lmi", "second").headers["docker-content-digest"]
    assert other != digest


def test_a_build_that_fails_pushes_nothing(build: Build, registry: Registry) -> None:
    (build.folder / "containers/lmi/handler/model.py").write_text("def (\n")
    done = build.run(registry, "broken")
    assert done.returncode != 0
    assert "SyntaxError" in done.stdout + done.stderr
    assert registry.manifest("slipway/lmi", "broken").status_code == 404


def test_a_registry_that_goes_away_fails_the_build(
    build: Build, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Registry(tmp_path_factory.mktemp("other"))
    other.close()
    done = build.run(other, "gone")
    assert done.returncode != 0
    assert f"dial tcp {other.address}: connect: connection refused" in done.stderr
