"""A command starts without what it does not use; `make lint` checks what each part may import."""

import subprocess
import sys

import pytest


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
        ("import slipway.cli.main", {"boto3", "botocore", "rich", "moto", "aws_cdk", "jsii"}),
        pytest.param(
            "import app", {"boto3", "botocore", "moto", "rich"}, marks=pytest.mark.size("all")
        ),
    ],
    ids=["command line", "app"],
)
def test_what_is_not_imported(code, forbidden):
    found = loaded(code)
    assert "slipway" in found
    assert found & forbidden == set()
