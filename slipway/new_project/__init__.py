"""The files of a new project.

Most of `files` are links to this repository's own. A wheel has the files in their place. The
workflows come from the page about CI.
"""

import importlib.metadata
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlparse
from urllib.request import url2pathname

import slipway
from slipway.config.editor_schema import SCHEMA_FILE, render
from slipway.config.names import CI, CONFIG_DIRECTORY, ENVIRONMENTS_FILE, LOCAL, PROJECT_KEY

WHEEL: Final = f"slipway-{slipway.__version__}-py3-none-any.whl"
WHEELS: Final = "wheels"
_FILES = Path(__file__).with_name("files")
_PAGE = Path(__file__).with_name("ci.md")
# Hidden files would be hard to see among the others.
_HIDDEN = {"gitignore": ".gitignore", "npmrc": ".npmrc"}
_WORKFLOW = re.compile(
    r"^`(\.github/\S+\.yml)`(?:.*\n)+?```yaml \w+\n((?:.*\n)+?)```$", re.MULTILINE
)
_ENVIRONMENT = re.compile(
    r"(?P<name>[a-z][a-z0-9]{0,19})=(?P<account>[0-9]{12})/(?P<region>[a-z]{2}(-[a-z]+)+-[0-9])"
)


@dataclass(frozen=True)
class Account:
    name: str
    account: str
    region: str

    @classmethod
    def parse(cls, text: str) -> "Account | None":
        """Returns what `NAME=ACCOUNT/REGION` says; None if it has another form or a taken name."""
        found = _ENVIRONMENT.fullmatch(text)
        if found is None or found["name"] in (LOCAL, CI, PROJECT_KEY):
            return None
        return cls(found["name"], found["account"], found["region"])


def new_files(accounts: Sequence[Account]) -> dict[str, bytes]:
    files = {}
    # In a checkout some folders are links.
    for folder, _, names in os.walk(_FILES, followlinks=True):
        inside = Path(folder).relative_to(_FILES)
        for name in names:
            shown = (inside / _HIDDEN.get(name, name)).as_posix()
            files[shown] = Path(folder, name).read_bytes()
    for name, text in _WORKFLOW.findall(_PAGE.read_text("utf-8")):
        # The page's environment, in the variables and in the names of GitHub's environments.
        named = text.replace("production", accounts[0].name) if accounts else text
        files[name] = named.encode()
    files[f"{CONFIG_DIRECTORY}/{SCHEMA_FILE}"] = render().encode()
    for each in accounts:
        files[ENVIRONMENTS_FILE] += (
            f'\n{each.name}:\n  account: "{each.account}"\n  region: {each.region}\n'
        ).encode()
    cdk = importlib.metadata.version("aws-cdk-lib")
    files["requirements.txt"] = (
        "# Slipway, and the CDK library whose assemblies the CDK CLI of package.json can read.\n"
        f"./{WHEELS}/{WHEEL}\naws-cdk-lib=={cdk}\n"
    ).encode()
    files["requirements-local.txt"] = (
        "# The same, with the embedded AWS, and with Node for the CDK.\n"
        f"-r requirements.txt\n./{WHEELS}/{WHEEL}[local]\n"
    ).encode()
    if (wheel := _installed_wheel()) is not None:
        files[f"{WHEELS}/{WHEEL}"] = wheel.read_bytes()
    return files


def _installed_wheel() -> Path | None:
    """Returns the wheel that Slipway was installed from, if it is a file of this machine."""
    text = importlib.metadata.distribution("slipway").read_text("direct_url.json") or "{}"
    address = urlparse(json.loads(text).get("url", ""))
    path = Path(url2pathname(address.path))
    return path if address.scheme == "file" and path.name == WHEEL and path.is_file() else None
