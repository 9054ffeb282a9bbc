"""A user's shell, and each source of credentials that boto3 can find in one."""

import os
import sys
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import botocore.credentials
import botocore.tokens
import pytest

from slipway.access import Access, open_access
from slipway.config.environments import Environment
from tests.publishing.aws_stand_in import ACCOUNT, CONTAINER_TOKEN, StandIn

ENVIRONMENT = Environment(name="production", account=ACCOUNT, region="eu-west-1")
STATIC = "aws_access_key_id = AKIASTATIC\naws_secret_access_key = secret-of-static\n"


class Shell:
    """A user's shell: its variables and the files in ~/.aws."""

    def __init__(self, home: Path, aws: StandIn, patch: pytest.MonkeyPatch) -> None:
        self.home, self.aws, self.patch = home, aws, patch
        for name in [name for name in os.environ if name.startswith(("AWS_", "S3_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ENDPOINT_URL", aws.url)
        (home / ".aws").mkdir()

    def config(self, text: str) -> None:
        (self.home / ".aws/config").write_text(text)

    def program(self, text: str) -> str:
        """Writes a Python program and returns the command that runs it."""
        path = self.home / "program.py"
        path.write_text(text)
        return f"{sys.executable} -S {path}"

    def open(self) -> Access:
        return open_access(ENVIRONMENT, self.home)


def environment_keys(shell: Shell) -> tuple[str, str]:
    shell.patch.setenv("AWS_ACCESS_KEY_ID", "ASIAENVIRONMENT")
    shell.patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    shell.patch.setenv("AWS_SESSION_TOKEN", "token-of-environment")
    return "ASIAENVIRONMENT", "token-of-environment"


def static_keys(shell: Shell) -> tuple[str, str]:
    # A default profile with other keys lies beside it.
    (shell.home / ".aws/credentials").write_text(
        f"[default]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = x\n[mine]\n{STATIC}"
    )
    shell.patch.setenv("AWS_PROFILE", "mine")
    return "AKIASTATIC", ""


def assumed_role(shell: Shell) -> tuple[str, str]:
    shell.config(
        f"[profile base]\n{STATIC}[profile role]\nsource_profile = base\n"
        f"role_arn = arn:aws:iam::{ACCOUNT}:role/publisher\n"
    )
    shell.patch.setenv("AWS_PROFILE", "role")
    return "ASIAASSUMEROLE", "token-of-ASSUMEROLE"


def type_codes(shell: Shell, prompter: Callable[[str], str]) -> None:
    provider = botocore.credentials.AssumeRoleProvider
    shell.patch.setattr(provider, "__init__", partialmethod(provider.__init__, prompter=prompter))


def role_with_mfa(shell: Shell) -> tuple[str, str]:
    shell.config(
        f"[profile base]\n{STATIC}[profile mfa]\nsource_profile = base\n"
        f"role_arn = arn:aws:iam::{ACCOUNT}:role/publisher\n"
        f"mfa_serial = arn:aws:iam::{ACCOUNT}:mfa/me\n"
    )
    shell.patch.setenv("AWS_PROFILE", "mfa")
    type_codes(shell, lambda _: "123456")
    return "ASIAASSUMEROLE", "token-of-ASSUMEROLE"


def web_identity(shell: Shell) -> tuple[str, str]:
    token = shell.home / "token"
    token.write_text("a-web-identity-token")
    shell.patch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    shell.patch.setenv("AWS_ROLE_ARN", f"arn:aws:iam::{ACCOUNT}:role/publisher")
    return "ASIAASSUMEROLEWITHWEBIDENTITY", "token-of-ASSUMEROLEWITHWEBIDENTITY"


def container(shell: Shell) -> tuple[str, str]:
    token = shell.home / "container-token"
    token.write_text(CONTAINER_TOKEN)
    # As EKS Pod Identity sets them.
    shell.patch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{shell.aws.url}/container")
    shell.patch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    return "ASIACONTAINER", "token-of-CONTAINER"


def instance(shell: Shell) -> tuple[str, str]:
    shell.patch.delenv("AWS_EC2_METADATA_DISABLED")
    shell.patch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", shell.aws.url)
    return "ASIAINSTANCE", "token-of-INSTANCE"


KINDS: list[Callable[[Shell], tuple[str, str]]] = [
    environment_keys,
    static_keys,
    assumed_role,
    role_with_mfa,
    web_identity,
    container,
    instance,
]
