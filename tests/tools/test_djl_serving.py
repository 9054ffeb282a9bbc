"""Building DJL Serving: from a small repository of its shape, with git, javac and jar themselves.

Maven is a stand-in: the libraries come from a registry.
"""

import os
import socket
import subprocess
import threading
import xml.etree.ElementTree as ElementTree
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.tools.conftest import program
from tools.djl_serving import build
from tools.djl_serving.__main__ import main

SOURCES = {
    "wlm/src/main/java/ai/djl/serving/wlm/Work.java": """
        package ai.djl.serving.wlm;
        public class Work { public static String done() { return "done"; } }
        """,
    "serving/src/main/java/ai/djl/serving/ModelServer.java": """
        package ai.djl.serving;
        public class ModelServer {
            public static void main(String[] arguments) {
                System.out.println(String.join(" ", arguments));
                System.out.println(ai.djl.serving.wlm.Work.done());
                System.out.println(System.getProperty("log4j.configurationFile"));
                System.out.println(System.getenv("OMP_NUM_THREADS"));
            }
        }
        """,
    "serving/src/main/conf/log4j2.xml": "<Configuration/>",
    "engines/python/src/main/java/ai/djl/python/Engine.java": """
        package ai.djl.python;
        public class Engine { }
        """,
    "engines/python/src/main/resources/META-INF/services/provider": "ai.djl.python.Engine",
    "engines/python/setup/djl_python_engine.py": "",
    "engines/python/setup/djl_python/__init__.py": "from djl_python.inputs import Input\n",
    "engines/python/setup/djl_python/inputs.py": "class Input: ...\n",
    "engines/python/setup/djl_python/tests/test_inputs.py": "",
    "engines/python/setup/setup.py": "",
}
RELEASE = {
    "djl": "0.99.1",
    "netty": "4.1.99.Final",
    "commons_cli": "1.9.0",
    "slf4j": "2.0.17",
    "log4j": "2.24.3",
    "disruptor": "3.4.4",
    "snakeyaml": "2.4",
}
MAVEN = """
for argument; do
  case $argument in
    -DoutputDirectory=*) mkdir -p "${argument#*=}" ;;
    */pom.xml) pom=$argument ;;
  esac
done
cp "$pom" "$SEEN_POM"
"""


def git(repository: Path, *arguments: str) -> str:
    told = ("git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.com")
    return subprocess.run(
        [*told, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Has a release 0.99.0; Maven writes down what it is asked for, to `pom.xml` beside it."""
    path = tmp_path / "repository"
    for name, text in SOURCES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "init", "--quiet")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--message", "0.99.0")
    release = {**RELEASE, "commit": git(path, "rev-parse", "HEAD")}
    # The branch goes on: the release's commit is no longer its head.
    (path / "wlm/src/main/java/ai/djl/serving/wlm/Work.java").unlink()
    git(path, "commit", "--quiet", "--all", "--message", "later")
    monkeypatch.setitem(build.RELEASES, "0.99.0", release)  # type: ignore[misc]
    maven = program(tmp_path / "programs", "mvn", MAVEN)
    monkeypatch.setenv("PATH", f"{maven.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SEEN_POM", str(tmp_path / "pom.xml"))
    return path


@pytest.mark.java
def test_it_builds_the_pinned_commit(repository, tmp_path, capfd):
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = tmp_path / "cache" / "slipway" / "djl-serving" / "0.99.0"
    assert main(["0.99.0", "--source", str(repository)], environ) == 0
    told = capfd.readouterr().out.splitlines()
    assert told == [
        "DJL Serving 0.99.0: fetches the sources",
        "DJL Serving 0.99.0: fetches the libraries",
        "DJL Serving 0.99.0: compiles",
        f"DJL Serving 0.99.0: is in {home}",
    ]

    started = subprocess.run(
        [home / "bin" / "serving", "-f", "config.properties"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout.splitlines() == [
        "-f config.properties",
        "done",
        str(home / "conf" / "log4j2.xml"),
        "1",
    ]
    with zipfile.ZipFile(home / "lib" / "python-0.99.0.jar") as jar:
        names = set(jar.namelist())
        assert "META-INF/services/provider" in names
        assert not {"setup.py", "djl_python/tests/test_inputs.py"} & names
        assert jar.read("djl_python/__init__.py").decode().endswith("\n__version__ = '0.99.0'\n")
        assert jar.read("native/lib/python.properties").decode() == (
            "version=0.99.0\n"
            "libraries=djl_python_engine.py,djl_python/__init__.py,djl_python/inputs.py\n"
        )
    assert [path.name for path in home.parent.iterdir()] == ["0.99.0"]

    assert main(["0.99.0", "--source", "/nowhere"], environ) == 0
    assert capfd.readouterr().out == f"DJL Serving 0.99.0: is in {home}\n"

    # The libraries are those of the release.
    project = ElementTree.parse(tmp_path / "pom.xml").getroot()  # noqa: S314  # our own
    asked = [[child.text for child in each] for each in project.iter("dependency")]
    assert ["ai.djl", "api", "0.99.1"] in asked
    assert ["io.netty", "netty-transport-native-epoll", "4.1.99.Final", "linux-aarch_64"] in asked
    assert ["org.apache.logging.log4j", "log4j-slf4j2-impl", "2.24.3"] in asked
    assert ["org.yaml", "snakeyaml", "2.4"] in asked
    assert not any("prometheus" in str(each) for each in asked)


@pytest.mark.java
def test_sources_that_cannot_be_fetched_are_named(repository, tmp_path, capfd):
    absent = tmp_path / "absent"
    assert main(["0.99.0", "--source", str(absent)], {"HOME": str(tmp_path)}) == 1
    told = capfd.readouterr().err
    assert told.startswith(f"git ls-remote --quiet {absent} HEAD ended with status 128:\n")
    assert f"'{absent}' does not appear to be a git repository" in told
    assert told.endswith(
        "The sources: --source, by default https://github.com/deepjavalibrary/djl-serving\n"
    )
    assert list((tmp_path / ".cache" / "slipway" / "djl-serving").iterdir()) == []


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs that succeed at once and do nothing; git is this machine's own."""
    for name in ("mvn", "javac", "jar"):
        program(tmp_path / "programs", name)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs{os.pathsep}{os.environ['PATH']}")


def test_sources_that_cannot_be_reached_are_told_from_other_failures(programs, tmp_path, capfd):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        source = f"https://127.0.0.1:{closed.getsockname()[1]}/djl-serving"
        assert main(["0.36.0", "--source", source], {"HOME": str(tmp_path)}) == os.EX_UNAVAILABLE
    told = capfd.readouterr().err
    assert told.startswith(f"git ls-remote --quiet {source} HEAD ended with status 128:\n")
    assert told.endswith(
        "\nThe sources cannot be reached from here. --source names a copy of the repository; by "
        "default it is https://github.com/deepjavalibrary/djl-serving\n"
    )
    assert list((tmp_path / ".cache" / "slipway" / "djl-serving").iterdir()) == []


@pytest.mark.parametrize(("status", "expected"), [(404, 1), (503, os.EX_UNAVAILABLE)])
def test_an_address_that_refuses_is_reached(status, expected, programs, tmp_path):
    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, *_arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = f"http://127.0.0.1:{server.server_port}/djl-serving"
        assert main(["0.36.0", "--source", source], {"HOME": str(tmp_path)}) == expected
        server.shutdown()


def test_programs_that_are_missing_are_all_named(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([], {"HOME": str(tmp_path)}) == 1
    assert capfd.readouterr().err.startswith(
        "To build DJL Serving these programs must be on the PATH:\n"
        "  git (Debian and Ubuntu: apt-get install git)\n"
        "  mvn (Debian and Ubuntu: apt-get install maven; macOS: brew install maven)\n"
        "  javac (Debian and Ubuntu: apt-get install openjdk-17-jdk-headless; "
        "macOS: brew install openjdk@17)\n"
        "  jar (it comes with javac)\n"
    )


def test_a_version_that_is_not_known(capfd):
    with pytest.raises(SystemExit) as caught:
        main(["0.24.0", "0.23.0"], {})
    assert caught.value.code == 2
    assert capfd.readouterr().err.endswith(
        "error: cannot build 0.24.0; can build 0.21.0, 0.23.0, 0.27.0, 0.33.0, 0.36.0\n"
    )


def test_no_place_to_keep_servers(capfd):
    assert main([], {}) == 1
    assert capfd.readouterr().err == (
        "Set HOME or XDG_CACHE_HOME: neither says where programs are kept.\n"
    )
