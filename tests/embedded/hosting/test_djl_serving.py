"""The program of AWS's LMI images: what it starts, how, and what it says where nothing is there."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.hosting.families import find_program, programs
from slipway.embedded_aws.hosting.families.lmi import djl_serving
from slipway.embedded_aws.hosting.families.lmi.djl_serving import (
    NotInstalledError,
    find_java,
    find_server,
    image_environment,
    server_environment,
    server_homes,
)
from slipway.embedded_aws.hosting.families.program import ContainerProgram
from tests.containers.lmi.real import servers
from tests.embedded.hosting import composition
from tests.support.processes import is_running
from tests.support.waiting import eventually

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.23.0-deepspeed0.9.5-cu118"
GREETER = b"""
import os

from djl_python import Output

_greeting = []


def handle(inputs):
    if inputs.is_empty():
        _greeting.append(inputs.get_properties()["greeting"])
        return None
    text = f"{_greeting[0]} {inputs.get_as_string()} from {os.getpid()}"
    return Output(200, "OK").add(text)
"""
STAND_IN = Path(__file__).with_name("stand_in.py")


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Stand-ins for DJL Serving, which writes down its arguments and serves, and for Java."""
    server = f'printf "%s\\n" "$@" > arguments; exec {shlex.quote(sys.executable)} {STAND_IN}'
    program(tmp_path / "djl" / "bin" / "serving", server)
    program(tmp_path / "java" / "bin" / "java", "")
    return {
        "DJL_SERVING_HOME": str(tmp_path / "djl"),
        "JAVA_HOME": str(tmp_path / "java"),
    }


@pytest.fixture
def endpoint(account: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Creates an endpoint of AWS's image on a machine with `environ`; returns what became of it."""
    programs = composition.PROGRAMS

    def create(environ: dict[str, str], source: Any = None, **declared: str) -> Any:
        program = ContainerProgram(djl_serving.COMMAND, image_environment(environ))
        monkeypatch.setitem(programs, "djl-inference", program)
        source = source or account.source()
        model = account.model(Image=IMAGE, Environment=declared, **source)
        return account.settled(account.begin(account.config(account.variant(model))))

    return create


def test_the_images_of_lmi_have_a_program():
    program = find_program(programs(), IMAGE)
    assert program.command == djl_serving.COMMAND
    assert program.entrypoint == ()


def test_the_server_is_started_as_in_the_image(account, endpoint, installed):
    described = endpoint(installed, OPTION_DTYPE="fp16", JAVA_OPTS="-Xmx2g")
    assert described["EndpointStatus"] == "InService"
    name = described["EndpointName"]
    environment = json.loads(account.invoke(name, "environment"))
    home, port = Path(environment["HOME"]), environment["SAGEMAKER_BIND_TO_PORT"]
    own = home / "djl-serving"
    assert (home / "arguments").read_text().splitlines() == [
        "-f", str(own / "config.properties"), "-s", environment["SM_MODEL_DIR"],
    ]  # fmt: skip
    assert (own / "config.properties").read_text() == (
        f"inference_address=http://127.0.0.1:{port}\n"
        f"management_address=http://127.0.0.1:{port}\n"
        "load_models=ALL\n"
    )
    assert environment["PYTHON_EXECUTABLE"] == sys.executable
    assert environment["PREDICT_TIMEOUT"] == "240"
    assert environment["MODEL_LOADING_TIMEOUT"] == "1200"
    assert environment["OPT_OUT_TRACKING"] == "true"
    assert environment["MODEL_SERVER_HOME"] == str(own)
    assert environment["DJL_CACHE_DIR"] == str(own / "cache")
    # What the model declares counts, and the directory for sockets does not depend on it.
    assert (environment["OPTION_DTYPE"], environment["JAVA_OPTS"]) == ("fp16", "-Xmx2g")
    assert environment["JDK_JAVA_OPTIONS"].startswith("'-Djava.io.tmpdir=/")
    assert "PYTHONPATH" not in environment
    pid = int(account.invoke(name, "pid"))
    account.delete(name)
    assert not is_running(pid)


def test_an_interpreter_of_ones_own():
    environ = {"SLIPWAY_DJL_PYTHON": "/opt/torch/bin/python", "OTHER": "x"}
    assert image_environment(environ)["PYTHON_EXECUTABLE"] == "/opt/torch/bin/python"
    assert "OTHER" not in image_environment(environ)
    assert "JAVA_HOME" not in image_environment({"JAVA_HOME": ""})


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (
            "DJL_SERVING_HOME",
            "The container exited with status 1; its last lines: DJL Serving is not installed. Run "
            "`make djl-serving` in Slipway's checkout to build it, or extract "
            "https://publish.djl.ai/djl-serving/serving-0.36.0.tar and set DJL_SERVING_HOME to the "
            "absolute path of its directory, or put `djl-serving` on the PATH (macOS: brew install "
            "djl-serving). Then start the embedded AWS again.",
        ),
        (
            "JAVA_HOME",
            "its last lines: DJL Serving needs Java 17, and there is no `java` on the PATH. "
            "Install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew "
            "install openjdk@17) or set JAVA_HOME. Then start the embedded AWS again.",
        ),
    ],
)
def test_a_machine_without_it_fails_the_endpoint_with_what_to_install(
    endpoint, installed, tmp_path, missing, message
):
    del installed[missing]
    described = endpoint(installed, PATH=str(tmp_path))
    assert described["EndpointStatus"] == "Failed"
    assert described["FailureReason"].endswith(message)


def test_a_server_that_cannot_be_run_is_said_to_be_so(endpoint, installed):
    server = Path(installed["DJL_SERVING_HOME"], "bin", "serving")
    server.write_text("#!/no/such/shell\n")
    described = endpoint(installed)
    assert described["FailureReason"].endswith(
        f"its last lines: cannot run {server}: No such file or directory"
    )


def make_home(home: Path) -> Path:
    version = home.name
    program(home / "bin" / "serving", "")
    (home / "lib").mkdir()
    (home / "lib" / f"serving-{version}.jar").touch()
    return home


def test_servers_that_were_built_are_found_the_newest_first(tmp_path):
    built = tmp_path / "slipway" / "djl-serving"
    old, new = (make_home(built / version) for version in ("0.23.0", "0.36.0"))
    make_home(built / ".0.27.0-half")
    (built / "0.9.0").mkdir()
    environ = {"XDG_CACHE_HOME": str(tmp_path), "HOME": "/nowhere"}
    assert server_homes(environ) == [new, old]
    assert server_homes({"HOME": str(tmp_path)}) == server_homes({}) == []
    own = make_home(tmp_path / ".cache" / "slipway" / "djl-serving" / "0.36.0")
    assert server_homes({"HOME": str(tmp_path)}) == [own]
    assert server_homes({**environ, "DJL_SERVING_HOME": f"/a{os.pathsep}/b"}) == [
        Path("/a"),
        Path("/b"),
    ]
    # The container's own home directory is empty: it is told where they are.
    told = image_environment(environ)["DJL_SERVING_HOME"]
    assert find_server({"DJL_SERVING_HOME": told}) == new / "bin" / "serving"


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("0.23.0-deepspeed0.9.5-cu118", "0.23.0"),
        ("0.27.0-deepspeed0.12.6-cu121", "0.36.0"),
        ("latest", "0.36.0"),
    ],
)
def test_the_server_is_of_the_images_version_where_there_is_one(tmp_path, tag, version):
    homes = [make_home(tmp_path / name) for name in ("0.36.0", "0.23.0")]
    program = find_program(programs(), f"{IMAGE.partition(':')[0]}:{tag}")
    environ = {**program.environment, "DJL_SERVING_HOME": os.pathsep.join(map(str, homes))}
    assert find_server(environ) == tmp_path / version / "bin" / "serving"


@pytest.mark.parametrize(
    ("tag", "version", "features"),
    [
        ("0.36.0-lmi27.0.0-cu130", "0.36.0", "vllm"),
        ("0.32.0-lmi14.0.0-cu126", "0.32.0", "vllm,lmi-dist"),
        ("0.33.0-tensorrtllm0.21.0-cu128", "0.33.0", "trtllm"),
        ("0.27.0-deepspeed0.12.6-cu121", "0.27.0", "vllm,lmi-dist"),
        ("0.23.0-deepspeed0.9.5-cu118-1a2b3c", "0.23.0", None),
        ("0.36.0", "0.36.0", None),
        ("latest", None, None),
    ],
)
def test_what_an_image_sets_by_its_tag(tag, version, features):
    plain = find_program(programs(), f"{IMAGE.partition(':')[0]}:latest").environment
    found = find_program(programs(), f"{IMAGE.partition(':')[0]}:{tag}").environment
    told = {"DJL_SERVING_VERSION": version, "SERVING_FEATURES": features}
    assert found == plain | {name: value for name, value in told.items() if value is not None}


def test_homes_that_are_none(tmp_path):
    with pytest.raises(NotInstalledError) as caught:
        find_server({"DJL_SERVING_HOME": str(tmp_path)})
    assert str(caught.value) == (
        f"DJL_SERVING_HOME is {tmp_path}, which has no program bin/serving. Set it to the "
        "absolute path of what https://publish.djl.ai/djl-serving/serving-0.36.0.tar is extracted "
        "to. Then start the embedded AWS again."
    )
    with pytest.raises(NotInstalledError) as caught:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert str(caught.value) == (
        f"JAVA_HOME is {tmp_path}, which has no program bin/java. Set it to a Java 17, or unset it "
        "to take the `java` on the PATH. Then start the embedded AWS again."
    )


def test_programs_on_the_path_are_found(tmp_path):
    server = program(tmp_path / "djl-serving", "")
    java = program(tmp_path / "java", "")
    environ = {"PATH": str(tmp_path)}
    assert (find_server(environ), find_java(environ)) == (server, java)


@pytest.mark.parametrize("name", ["d" * 80, "Ann's"])
def test_a_directory_that_no_socket_or_option_can_name_is_not_taken(tmp_path, name):
    directory = tmp_path / name
    directory.mkdir()
    options = server_environment({}, tmp_path / "serving", directory)["JDK_JAVA_OPTIONS"]
    temporary = Path(options.removeprefix("'-Djava.io.tmpdir=").removesuffix("'"))
    assert temporary.is_dir()
    assert not temporary.is_relative_to(tmp_path)
    assert len(os.fsencode(temporary)) <= 80
    temporary.rmdir()


def test_options_and_a_python_path_of_the_model_are_kept(tmp_path):
    server = tmp_path / "serving"
    own = {"JDK_JAVA_OPTIONS": "-Dai.djl.logging.level=debug", "PYTHONPATH": "/x"}
    kept = server_environment(own, server, tmp_path)
    begin = "-Dai.djl.logging.level=debug '-Djava.io.tmpdir=/"
    assert kept["JDK_JAVA_OPTIONS"].startswith(begin)
    assert kept["PYTHONPATH"] == "/x"


def test_logs_are_plain_where_the_version_can(tmp_path):
    server = program(tmp_path / "bin" / "serving", "")
    assert "DEFAULT_JVM_OPTS" not in server_environment({}, server, tmp_path)
    plain = tmp_path / "conf" / "log4j2-plain.xml"
    plain.parent.mkdir()
    plain.touch()
    options = server_environment({}, server, tmp_path)["DEFAULT_JVM_OPTS"]
    assert options == f"-Dlog4j.configurationFile={plain.resolve()}"


@pytest.mark.djl_serving
def test_endpoints_answer_with_the_real_server(account, endpoint):
    """The package has a handler of its own, which needs no library of the images."""
    account.put("greeter/files/serving.properties", b"engine=Python\noption.greeting=hello\n")
    account.put("greeter/files/model.py", GREETER)
    source = account.source("s3://artifacts/greeter/files/")
    homes = servers.homes()
    assert homes
    for home in homes:
        environ = {**os.environ, "DJL_SERVING_HOME": str(home.path)}
        first = endpoint(environ, source=source)
        assert first["EndpointStatus"] == "InService", first
        greeting, _, worker = account.invoke(first["EndpointName"], "world").partition(" from ")
        assert greeting == "hello world"
        # Servers that share a directory for their sockets kill each other's workers.
        second = endpoint(environ, source=source)
        assert account.invoke(second["EndpointName"], "you").startswith("hello you from ")
        assert account.invoke(first["EndpointName"], "you") == f"hello you from {worker}"
        for described in (first, second):
            account.delete(described["EndpointName"])
        assert not is_running(int(worker))


@pytest.mark.djl_serving
def test_what_the_real_server_dies_of_is_in_the_log(account, endpoint):
    account.put("broken/files/serving.properties", b"engine=python\n")
    account.put("broken/files/model.py", GREETER)
    environ = {**os.environ, "DJL_SERVING_HOME": str(servers.homes()[0].path)}
    described = endpoint(environ, source=account.source("s3://artifacts/broken/files/"))
    assert described["EndpointStatus"] == "Failed"
    assert "The container exited with status" in described["FailureReason"]
    said = "Deep learning engine not found: python"
    name = described["EndpointName"]
    assert eventually(lambda: any(said in line for line in account.logged(name)))
