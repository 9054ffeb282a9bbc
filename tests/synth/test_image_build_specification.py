"""The build specification that CodeBuild runs for an image, with stand-ins for programs."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from slipway.stacks.constructs.image_build import build_specification
from tests.support.accounts import forget_accounts
from tests.support.images import put_image
from tests.synth.image_stacks import REGISTRY

STAND_IN = """\
#!{python}
import json, os, sys
name = os.path.basename(sys.argv[0])
call = [name, *sys.argv[1:]]
if call[:2] == ["docker", "login"]:
    call.append("< " + sys.stdin.read())
with open(os.environ["CALLS"], "a", encoding="utf-8") as calls:
    calls.write(json.dumps(call) + "\\n")
if call[:3] == ["aws", "ecr", "batch-get-image"]:
    print(os.environ["IMAGES"])
if call[:3] == ["aws", "s3", "cp"]:
    with open(call[-1], "w", encoding="utf-8") as copy:
        copy.write("certificates from " + call[-2])
if call[:3] == ["aws", "ecr", "get-login-password"]:
    print("password-of-" + call[-1])
if os.environ.get("FAILS") == " ".join(call[:3]):
    sys.exit("it failed")
"""
URI = f"{REGISTRY}/slipway/tensorrt:trt10.13-0123456789abcdef"
BASE = "nvcr.io/nvidia/tensorrt:25.09-py3"
LOOK = [
    "aws", "ecr", "batch-get-image", "--repository-name", "slipway/tensorrt",
    "--image-ids", "imageTag=trt10.13-0123456789abcdef",
    "--query", "length(images)", "--output", "text",
]  # fmt: skip


def token(region: str) -> list[str]:
    return ["aws", "ecr", "get-login-password", "--region", region]


def log_in(registry: str, region: str) -> list[str]:
    return [
        "docker", "login", "--username", "AWS", "--password-stdin", registry,
        f"< password-of-{region}\n",
    ]  # fmt: skip


def build(base: str) -> list[str]:
    return [
        "docker", "buildx", "build", "--platform", "linux/amd64",
        "--provenance=false", "--sbom=false", "--progress", "plain",
        "--build-arg", f"BASE_IMAGE={base}", "--file", "containers/tensorrt/Dockerfile",
        "--target", "compiler",
        "--output", f"type=image,name={URI},oci-mediatypes=false,push=true", ".",
    ]  # fmt: skip


class Build:
    """Runs the specification's commands as CodeBuild does, with what stands in for the programs."""

    def __init__(self, folder: Path, programs: tuple[str, ...] = ("aws", "docker")) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        for name in programs:
            program = folder / name
            program.write_text(STAND_IN.format(python=sys.executable))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(self, base: str = BASE, **variables: str) -> subprocess.CompletedProcess[str]:
        specification = json.loads(build_specification())
        assert specification["version"] == 0.2
        (command,) = specification["phases"]["build"]["commands"]
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self._folder,
            env={
                "PATH": f"{self._folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "CALLS": str(self._calls),
                "IMAGE_URI": URI,
                "BASE_IMAGE": base,
                "TARGET": "compiler",
                "DOCKERFILE": "containers/tensorrt/Dockerfile",
                "IMAGES": "0",
                **variables,
            },
            capture_output=True,
            text=True,
        )

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text("utf-8").splitlines()]


def test_an_image_that_is_there_is_not_built_again(tmp_path: Path):
    build_ = Build(tmp_path)
    result = build_.run(IMAGES="1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{URI} is there already: nothing to build.\n"
    assert build_.calls == [LOOK]


def test_one_that_is_not_is_built_and_pushed(tmp_path: Path):
    build_ = Build(tmp_path)
    result = build_.run()
    assert (result.returncode, result.stderr) == (0, "")
    calls = build_.calls
    assert calls[0] == LOOK
    # The two ends of a pipe start in either order.
    assert sorted(calls[1:3]) == sorted([token("eu-west-1"), log_in(REGISTRY, "eu-west-1")])
    assert calls[3:] == [build(BASE)]


def test_the_registry_of_a_base_in_ecr_is_logged_in_to_as_well(tmp_path: Path):
    registry = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
    build_ = Build(tmp_path)
    assert build_.run(base=f"{registry}/base:1").returncode == 0
    assert log_in(REGISTRY, "eu-west-1") in build_.calls
    assert log_in(registry, "us-east-1") in build_.calls
    assert build_.calls[-1] == build(f"{registry}/base:1")
    assert len(build_.calls) == 6


def test_mirrors_and_their_authorities_reach_the_build(tmp_path: Path):
    build_ = Build(tmp_path)
    certificates = tmp_path / "certs.d"
    result = build_.run(
        base="mirror.example.com:5000/nvcr/nvidia/tensorrt:25.09-py3",
        CA_BUNDLE="s3://assets/0123.pem",
        UV_DEFAULT_INDEX="https://mirror.example.com/simple",
        UV_PYTHON_INSTALL_MIRROR="https://mirror.example.com/python",
        DOCKER_CERTIFICATES=str(certificates),
    )
    assert (result.returncode, result.stderr) == (0, "")
    (copy,) = [call for call in build_.calls if call[:3] == ["aws", "s3", "cp"]]
    assert copy[3:5] == ["--only-show-errors", "s3://assets/0123.pem"]
    # Docker looks for a registry's authorities under its name and port.
    trusted = certificates / "mirror.example.com:5000" / "ca.crt"
    assert trusted.read_text() == "certificates from s3://assets/0123.pem"
    options = build_.calls[-1]
    assert options[options.index("--secret") + 1] == f"id=ca_bundle,src={copy[5]}"
    given = [value for name, value in pairwise(options) if name == "--build-arg"]
    assert given == [
        "BASE_IMAGE=mirror.example.com:5000/nvcr/nvidia/tensorrt:25.09-py3",
        "UV_DEFAULT_INDEX=https://mirror.example.com/simple",
        "UV_PYTHON_INSTALL_MIRROR=https://mirror.example.com/python",
    ]


@pytest.mark.parametrize(
    ("fails", "count"),
    [
        ("aws ecr batch-get-image", 1),
        ("aws ecr get-login-password", 3),
        ("docker login --username", 3),
        ("docker buildx build", 4),
    ],
)
def test_a_step_that_fails_fails_the_build(tmp_path: Path, fails: str, count: int):
    build_ = Build(tmp_path)
    result = build_.run(FAILS=fails)
    assert result.returncode != 0
    assert "it failed" in result.stderr
    assert len(build_.calls) == count


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # What moto knows is the process's: other tests' repositories too.
    forget_accounts()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.mark.size("all")
def test_the_real_aws_cli_tells_whether_a_tag_is_there(tmp_path: Path, registry: str):
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    variables = {**credentials, "AWS_ENDPOINT_URL": registry, "AWS_DEFAULT_REGION": "eu-west-1"}
    build_ = Build(tmp_path, programs=("docker",))
    missing = build_.run(**variables)
    assert missing.returncode != 0
    assert "RepositoryNotFoundException" in missing.stderr
    ecr = boto3.client(
        "ecr",
        endpoint_url=registry,
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106  # moto's
    )
    ecr.create_repository(repositoryName="slipway/tensorrt")
    assert build_.run(**variables).returncode == 0
    assert build_.calls[-1] == build(BASE)
    built = len(build_.calls)
    put_image(ecr, "slipway/tensorrt", URI.rpartition(":")[2])
    again = build_.run(**variables)
    assert (again.returncode, again.stdout) == (
        0, f"{URI} is there already: nothing to build.\n",
    )  # fmt: skip
    assert len(build_.calls) == built
