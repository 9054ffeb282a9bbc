"""The versions that a project's files pin, and unknown words of a config that come from one."""

import pytest

import slipway
from slipway.errors import Location
from slipway.pins import pinned_versions
from slipway.project import Project
from tests.support.projects import config_text, refusal, write_project

FILES = {
    "pyproject.toml": '[project]\ndependencies = [\n  "boto3",\n  "slipway[local]==0.2.0",\n]\n',
    "requirements.txt": "# slipway==9\nslipway==0.2.1 \\\n    --hash=sha256:00\nslipway-other==3\n",
    "requirements-dev.in": "./wheels/slipway-0.2.2-py3-none-any.whl\n",
    "uv.lock": '[[package]]\nname = "slipway"\nversion = "0.2.3"\n',
    "notes.txt": "slipway==4\n",
}


def test_every_form_of_a_pin_is_read_with_its_place(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    assert pinned_versions(tmp_path) == {
        Location("pyproject.toml", 4, 1): "0.2.0",
        Location("requirements.txt", 2, 1): "0.2.1",
        Location("requirements-dev.in", 1, 1): "0.2.2",
        Location("uv.lock", 2, 1): "0.2.3",
    }


@pytest.mark.parametrize(
    ("edit", "is_unknown"),
    [
        (("description:", "temperament: calm\ndescription:"), True),
        (("container: tensorrt", "container: abacus"), True),
        (("max_batch_size: 8", "max_batch_size: 0"), False),
    ],
)
def test_words_of_another_version_name_its_pin(tmp_path, edit, is_unknown):
    write_project(tmp_path, {"tiny": config_text("tiny", edit)})
    (tmp_path / "requirements.txt").write_text("slipway==99.0\n", "utf-8")
    told = [
        each
        for each in refusal(Project(tmp_path).config, "tiny", "production").problems
        if each.code == "SW798"
    ]
    assert len(told) == is_unknown
    for each in told:
        assert str(each) == (
            f"requirements.txt:1:1: the project pins slipway 99.0, and slipway "
            f"{slipway.__version__} runs [SW798]\n"
            "    Install what the project pins; or write the config for the version that runs."
        )
    # The version that runs may be pinned.
    (tmp_path / "requirements.txt").write_text(f"slipway=={slipway.__version__}\n", "utf-8")
    assert "SW798" not in str(refusal(Project(tmp_path).config, "tiny", "production"))
