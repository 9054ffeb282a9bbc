"""What each part may import; and that a command starts without what it does not use."""

import subprocess
import sys

import pytest

CORE = ["slipway.config.load", "slipway.facts.instances", "slipway.planning.resolve"]
EVERYTHING = "import pkgutil, slipway, importlib\n" + (
    "for m in pkgutil.walk_packages(slipway.__path__, 'slipway.'): importlib.import_module(m.name)"
)


def loaded(code: str) -> set[str]:
    """Returns the modules that a fresh interpreter has after running the code."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        (f"import {', '.join(CORE)}", {"boto3", "botocore", "aws_cdk", "jsii"}),
        (
            "import slipway.project",
            {"boto3", "botocore", "aws_cdk", "jsii", "slipway.publishing", "slipway.operations"},
        ),
        (EVERYTHING, {"aws_cdk", "jsii", "constructs"}),
        ("import slipway.cli.main", {"boto3", "botocore", "rich", "moto", "aws_cdk", "jsii"}),
        pytest.param(
            "import app", {"boto3", "botocore", "moto", "rich"}, marks=pytest.mark.size("all")
        ),
    ],
    ids=["core", "project", "all of slipway", "command line", "app"],
)
def test_what_is_not_imported(code, forbidden):
    found = loaded(code)
    assert "slipway" in found
    assert found & forbidden == set()
