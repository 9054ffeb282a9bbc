"""`slipway upgrade --check`: the versions that it takes, what it says, and what it refuses.

Wheels whose `slipway.cdk` writes given stacks stand for releases: what is installed, run and
compared is real, and needs neither the CDK nor a package index.
"""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import slipway
from tests.support.projects import config_text, write_project

ACCOUNT = "aws://210987654321/eu-west-1"
APP = "from slipway.cdk import App\n\nApp(__file__).synth()\n"
_CDK = """\
import json, os, sys
from pathlib import Path


class App:
    def __init__(self, file):
        self.root = Path(file).parent

    def synth(self):
        context = json.loads(os.environ["CDK_CONTEXT_JSON"])
        output = Path(os.environ["CDK_OUTDIR"])
        output.mkdir()
        artifacts = {"Tree": {"type": "cdk:tree"}}
        for name, stack in json.loads(Path(__file__).with_name("stacks.json").read_text()).items():
            artifacts[name] = {
                "type": "aws:cloudformation:stack",
                "environment": "ACCOUNT",
                "properties": {
                    "templateFile": f"{name}.template.json",
                    "stackName": f"{stack.get('stack', name)}-{context['env']}",
                },
                "metadata": {name: [
                    {"type": f"aws:cdk:{kind}", "data": text} for kind, text in stack["told"]
                ]} if "told" in stack else {},
            }
            template = {"Resources": stack.get("resources", {})}
            (output / f"{name}.template.json").write_text(json.dumps(template))
        (output / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
"""

Stacks = Mapping[str, Mapping[str, Any]]


def write_wheel(folder: Path, version: str, stacks: Stacks, without: str = "") -> Path:
    """Writes a wheel; the file `without` is left out."""
    folder.mkdir(exist_ok=True)
    about = f"slipway-{version}.dist-info"
    files = {
        "slipway/__init__.py": f'__version__ = "{version}"\n',
        "slipway/planning/__init__.py": "",
        "slipway/cdk.py": _CDK.replace("ACCOUNT", ACCOUNT),
        "slipway/stacks.json": json.dumps(stacks),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: slipway\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files = {name: text for name, text in files.items() if name != without}
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    path = folder / f"slipway-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name), text)  # the same bytes at any time
    return path


def environments(root: Path) -> list[Path]:
    """Returns the environments that a project has of other versions."""
    return sorted((root / ".slipway" / "versions").glob("*"))


MODEL, OTHER = "tiny", "other"
IMAGES: Any = {
    "Model": {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": {"Image": "a"}}},
    "Board": {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": "{}"}},
}
OLD: Stacks = {MODEL: {"resources": IMAGES}, OTHER: {"resources": IMAGES}}


def stacks(name: str = MODEL, **changes: Any) -> Stacks:
    """Returns the old stacks, one of them changed."""
    return {**OLD, name: {**OLD[name], **changes}}


def image(text: str) -> Any:
    model = {**IMAGES["Model"], "Properties": {"PrimaryContainer": {"Image": text}}}
    return {**IMAGES, "Model": model}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with two models and an index that has version 1.0."""
    root = tmp_path / "a project"
    root.mkdir()
    texts = {name: config_text(name) for name in (MODEL, OTHER)}
    write_project(root, texts, published=[MODEL, OTHER])
    (root / "app.py").write_text(APP, "utf-8")
    write_wheel(tmp_path / "index", "1.0", OLD)
    # The folder of wheels is all that uv and pip know.
    for tool in ("UV", "PIP"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", os.fspath(tmp_path / "index"))
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def upgrade(project, slipway_command):
    return slipway_command.of("upgrade", "--check")


@pytest.fixture
def same(upgrade):
    """Compares version 1.0 with itself."""
    return upgrade.of("--from", "1.0", "1.0")


@pytest.fixture
def compare(project, upgrade):
    """Compares version 1.0 with a wheel that has other stacks."""

    def run(after: Stacks, *options: str) -> tuple[int, str, str]:
        wheel = write_wheel(project.parent / "wheels", "2.0", after)
        return upgrade("--from", "1.0", str(wheel), *options)

    return run


def test_the_same_stacks_are_no_change(compare, project):
    assert compare(OLD) == (0, "From slipway 1.0 to slipway 2.0\n\nNo stack changes.\n", "")
    # The second time, nothing is installed.
    times = [path.stat().st_mtime_ns for path in environments(project)]
    assert len(times) == 2
    assert compare(OLD)[0] == 0
    assert [path.stat().st_mtime_ns for path in environments(project)] == times
    # A wheel that was built anew is another one.
    assert "tiny in `production`" in compare(stacks(resources=image("b")))[1]


def test_a_new_fleet_has_its_size_and_minutes_and_the_warnings_that_are_new(compare):
    old_warning = [("warning", "old [ack: x]")]
    after = stacks(resources=image("b"), told=[*old_warning, ("warning", "new [ack: y]")])
    code, text, _ = compare(after)
    assert code == 0
    assert text == (
        "From slipway 1.0 to slipway 2.0\n\n"
        "tiny in `production`\n"
        "  verdict    new fleet: 2 x ml.g4dn.xlarge start beside the old fleet, within minutes; "
        "quota of 4; each starts within 20 minutes, or the update fails\n"
        '  new fleet  AWS::SageMaker::Model is made anew: "Image": "a" -> "Image": "b" (the '
        "endpoint gets another configuration)\n"
        "  warning    old\n"
        "  warning    new\n"
    )


def test_stacks_with_the_same_change_are_one_entry(compare):
    resources = {**IMAGES, "Alarm": {"Type": "AWS::CloudWatch::Alarm"}}
    after = {name: {"resources": resources} for name in (MODEL, OTHER)}
    assert compare(after)[1].split("\n\n")[1:] == [
        "tiny, other in `production`\n"
        "  verdict   in place: what serves stays\n"
        "  in place  AWS::CloudWatch::Alarm is added (what serves stays)\n"
    ]


def test_what_takes_away_fails_unless_it_is_allowed(compare):
    gone = {MODEL: OLD[MODEL]}
    code, text, error = compare(gone)
    assert (code, "other in `production`\n  verdict  removed: its stack stays" in text) == (1, True)
    assert "other in `production`: removed" in error
    assert compare(gone, "--allow-destructive")[0] == 0
    moved = stacks(stack="elsewhere")
    assert "tiny in `production`: needs destroy" in compare(moved)[2]
    assert "verdict  new" in compare({**OLD, "third": {}})[1]


def test_a_config_that_the_new_version_refuses_fails(compare):
    report = "1 problem\n- model_configs/tiny.yaml:3:1: model: unknown [SW106]\n    Mend it."
    after = stacks(told=[("error", report)])
    code, _, error = compare(after, "--allow-destructive")
    assert code == 1
    assert f"slipway 2.0 refuses tiny in `production`: [SW796]\n{report}" in error


def test_a_config_that_only_the_old_version_refuses_is_unknown(compare, project, tmp_path):
    refusing = stacks(told=[("error", "1 problem\n- a.yaml: no [SW106]\n    Mend it.")])
    write_wheel(tmp_path / "index", "1.0", refusing)
    assert compare(OLD)[:2] == (
        0,
        "From slipway 1.0 to slipway 2.0\n\ntiny in `production`\n"
        "  verdict  unknown: the version before refuses it: a.yaml: no [SW106]\n",
    )
    assert "both versions refuse it: a.yaml: no" in compare(refusing)[1]


def test_json_has_every_stack_and_the_problems(compare):
    code, text, error = compare({MODEL: {"resources": image("b")}}, "--json")
    assert (code, error) == (1, "")
    found = json.loads(text)
    assert (found["base"], found["version"]) == ("slipway 1.0", "2.0")
    assert [(each["model"], each["verdict"]) for each in found["models"]] == [
        ("tiny", "new fleet"),
        ("other", "removed"),
    ]
    assert [each["code"] for each in found["problems"]] == ["SW458"]


def test_the_pinned_version_is_the_default(project, upgrade, same):
    (project / "requirements.txt").write_text("slipway==1.0 \\\n  --hash=sha256:0\n", "utf-8")
    assert "No stack changes" in same.done()
    (project / "pyproject.toml").write_text('dependencies = [\n  "slipway==2.0",\n]\n', "utf-8")
    error = upgrade.refused()
    assert "pyproject.toml:2:1: this file pins slipway 2.0; the project pins 1.0 and 2.0" in error
    assert "requirements.txt:1:1: this file pins slipway 1.0" in error
    (project / "requirements.txt").unlink()
    assert "slipway 2.0 cannot be installed:" in upgrade()[2]
    pin = f'dependencies = ["slipway=={slipway.__version__}"]\n'
    (project / "pyproject.toml").write_text(pin, "utf-8")
    assert "names no version" in upgrade()[2]


def test_what_cannot_be_asked_is_refused(project, slipway_command, upgrade, tmp_path):
    error = slipway_command.refused("upgrade", "1.0")
    assert "installs nothing, and needs `--check` [SW409]" in error
    missing = upgrade.refused("9.9")
    assert "slipway 9.9 cannot be installed: [SW795]" in missing
    assert "Because there is no version of slipway==9.9" in missing
    assert "'main' is no version, no wheel and no checkout" in upgrade.refused("main")
    assert f"{tmp_path} is no checkout" in upgrade.refused(str(tmp_path))
    package = tmp_path / "folder" / "slipway"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()  # such as site-packages
    assert "is no checkout" in upgrade.refused(str(package.parent))
    foreign = write_wheel(tmp_path, "3.0", {}, without="slipway/planning/__init__.py")
    assert "is other software of this name" in upgrade.refused(str(foreign))
    older = write_wheel(tmp_path, "0.0.1", {}, without="slipway/cdk.py")
    error = upgrade.refused("--from", str(older), "1.0")
    assert "slipway 0.0.1 is from before `slipway.cdk`" in error
    assert "there is no environment 'x'" in upgrade.refused("1.0", "--env", "x")
    assert [path.name for path in environments(project) if path.name.startswith("tmp")] == []


def test_a_project_whose_app_does_not_run_or_that_cannot_be_written_is_reported(project, same):
    (project / "app.py").write_text("import stacks.assembly\n", "utf-8")
    error = same.refused()
    assert "the app.py of slipway 1.0 wrote no templates: Traceback" in error
    assert "ModuleNotFoundError: No module named 'stacks'" in error
    shutil.rmtree(project / ".slipway")
    (project / ".slipway").write_text("in the way", "utf-8")
    error = same.refused()
    assert ".slipway/versions" in error
    assert "cannot be written" in error


def test_two_commands_may_install_one_version_at_a_time(project, same, monkeypatch):
    same.done()
    (environment,) = environments(project)
    other = environment.rename(project / "of the other command")
    run = subprocess.run

    def run_more_slowly(*command: Any, **options: Any) -> Any:
        done = run(*command, **options)
        if other.exists():
            other.rename(environment)
        return done

    monkeypatch.setattr("slipway.operations.versions.subprocess.run", run_more_slowly)
    same.done()
    assert environments(project) == [environment]


@pytest.mark.size("all")
def test_pip_installs_where_there_is_no_uv(project, same, monkeypatch):
    monkeypatch.setattr("slipway.operations.versions.shutil.which", lambda *_, **__: None)
    assert "No stack changes" in same.done()
    (environment,) = environments(project)
    python = environment / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
    assert done.returncode == 0
