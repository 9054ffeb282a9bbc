import re
import subprocess
import sys
import zipfile

import pytest

from tests.support.pages import ROOT
from tools.install import UV_LIST, uv_variables


def test_what_pip_is_told_uv_is_told():
    told = [
        "global.index-url='https://files.example/simple'",
        "global.timeout='60'",
        "install.find-links='\\n/opt/wheels\\n/srv/wheels'",
        ":env:.cert='/etc/ssl/ours.pem'",
        ":env:.extra-index-url='https://a.example https://b.example'",
    ]
    assert uv_variables(told, {}) == {
        "UV_DEFAULT_INDEX": "https://files.example/simple",
        "UV_FIND_LINKS": "/opt/wheels,/srv/wheels",
        "SSL_CERT_FILE": "/etc/ssl/ours.pem",
        "UV_INDEX": "https://a.example https://b.example",
    }


def test_a_variable_wins_over_a_file_as_in_pip():
    told = [":env:.index-url='https://env.example'", "global.index-url='https://file.example'"]
    assert uv_variables(told, {}) == {"UV_DEFAULT_INDEX": "https://env.example"}


# A requirement with its hashes: `name==1.2 ; marker \\`, then a line for each hash.
_REQUIREMENT = re.compile(
    r"^[\w.-]+(\[[\w,-]+\])?==\S+( ; [^\\]+)? \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+", re.M
)
# Builds of PyTorch for the CPU have hashes of their own; its version alone is fixed.
UNHASHED = "requirements-torch.txt"


def _installed_lists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"(?:\$\(INSTALL\)|--requirement) (requirements\S*\.txt)", makefile)
    of_targets = ["requirements-checkov.txt", "tests/containers/lmi/real/vllm/requirements.txt"]
    clients = [f"tools/clients/{name}.txt" for name in ("clients", "sagemaker-2", "sagemaker-3")]
    uv = UV_LIST.relative_to(ROOT).as_posix()
    return sorted({*named, *of_targets, *clients, "tools/triton/requirements.txt", uv})


@pytest.mark.parametrize("name", [each for each in _installed_lists() if each != UNHASHED])
def test_every_package_of_a_list_has_its_version_and_hashes(name):
    text = re.sub(r"^#.*\n", "", (ROOT / name).read_text("utf-8"), flags=re.M)
    assert len(_REQUIREMENT.findall(text)) > 0
    assert _REQUIREMENT.sub("", text) == ""


def test_the_makefile_requires_the_hashes_of_every_list():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    installs = [line for line in makefile.splitlines() if "tools/install.py" in line]
    without = [line.split("install.py")[1] for line in installs if "--require-hashes" not in line]
    assert without == [" --editable .", f" --requirement {UNHASHED}"]


def test_a_package_with_another_hash_is_refused(tmp_path):
    """uv fetches no other file of a release than those whose hashes are listed."""
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"idna==3.10 --hash=sha256:{'0' * 64}\n", "utf-8")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    _write_wheel(wheels / "idna-3.10-py3-none-any.whl")
    done = subprocess.run(
        [
            sys.executable, ROOT / "tools" / "install.py", "--no-index", "--offline",
            "--find-links", wheels, "--target", tmp_path / "target", "--require-hashes",
            "--requirement", listed,
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Hash mismatch" in done.stderr


def _write_wheel(path):
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(
            "idna-3.10.dist-info/METADATA", "Metadata-Version: 2.1\nName: idna\nVersion: 3.10\n"
        )
        wheel.writestr(
            "idna-3.10.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("idna-3.10.dist-info/RECORD", "")
