"""Wheels of other versions of Slipway, whose `slipway.cdk` writes given stacks.

They stand for releases: what is installed, run and compared is real, and needs neither the CDK nor
a package index.
"""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

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


def use_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a folder of wheels all that uv and pip know."""
    for tool in ("UV", "PIP"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", os.fspath(folder))


def environments(root: Path) -> list[Path]:
    """Returns the environments that a project has of other versions."""
    return sorted((root / ".slipway" / "versions").glob("*"))
