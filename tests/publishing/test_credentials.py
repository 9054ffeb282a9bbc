"""s5cmd uploads with the credentials that boto3 resolved, whatever they come from.

The real boto3 and the real s5cmd, with a user's files and environment, and a stand-in for AWS that
notes who signed each request to S3.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partialmethod
from pathlib import Path

import botocore.credentials
import botocore.session
import httpx
import pytest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import MissingDependencyException

from slipway.access import Access, open_access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.publishing.credential_endpoint import CredentialEndpoint
from slipway.publishing.s5cmd import Upload, upload
from tests.publishing.aws_stand_in import ACCOUNT, CONTAINER_TOKEN, StandIn, started

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


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with started() as stand_in:
        yield stand_in


@pytest.fixture
def aws(server: StandIn) -> StandIn:
    server.seen.clear()
    server.credentials_given = 0
    return server


@pytest.fixture
def shell(tmp_path: Path, aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, aws, monkeypatch)


def send(shell: Shell, access: Access, *, size_bytes: int = 5, **settings: float) -> list[Upload]:
    path = shell.home / "model.bin"
    with path.open("wb") as file:
        file.truncate(size_bytes)
    completed: list[Upload] = []
    upload(
        [Upload(path, "s3://a-bucket/model.bin", size_bytes)],
        access=access,
        on_complete=completed.append,
        **settings,
    )
    return completed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_s5cmd_signs_with_what_boto3_resolved(
    shell: Shell,
    aws: StandIn,
    kind: Callable[[Shell], tuple[str, str]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    access_key, session_token = kind(shell)
    assert len(send(shell, shell.open())) == 1
    assert {(seen.access_key, seen.session_token) for seen in aws.seen} == {
        (access_key, session_token)
    }
    # An MFA code is asked for once, and a role is assumed once, for both programs.
    assert aws.credentials_given <= 1
    assert capfd.readouterr() == ("", "")


def test_nothing_secret_is_in_the_childs_arguments_or_environment(
    shell: Shell, aws: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment_keys(shell)
    access = shell.open()
    noted = shell.home / "noted.json"
    spy = shell.home / "s5cmd"
    spy.write_text(
        f"#!{sys.executable} -S\nimport json, os, sys\n"
        f"json.dump([sys.argv, dict(os.environ)], open({str(noted)!r}, 'w'))\nsys.exit(3)\n"
    )
    spy.chmod(0o755)
    monkeypatch.setattr("slipway.publishing.s5cmd.executable", lambda: str(spy))
    with pytest.raises(UserError, match="s5cmd ended with 3"):
        send(shell, access)
    arguments, environment = json.loads(noted.read_text())
    assert arguments[1:] == ["--json", "--log", "info", "--numworkers", "256", "run"]
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} & {*environment}
    assert "token-of-environment" not in environment.values()
    # The port is closed with the upload: what the variables lead to is gone.
    assert environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"].startswith("http://127.0.0.1:")


def test_the_endpoint_answers_nobody_but_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def no_look_up(_: str) -> str:
        raise AssertionError("a name was looked up")

    monkeypatch.setattr("socket.getfqdn", no_look_up)

    def credentials() -> ReadOnlyCredentials:
        asked.append(True)
        return ReadOnlyCredentials("AKIA", "secret", None)

    with CredentialEndpoint(credentials) as endpoint:
        url = endpoint.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
        token = endpoint.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
        for headers in ({}, {"Authorization": "guess"}, {"Authorization": f"Bearer {token}"}):
            refused = httpx.get(url, headers=headers)
            assert (refused.status_code, "secret" in refused.text) == (401, False)
        assert httpx.get(f"{url}/x", headers={"Authorization": token}).status_code == 404
        assert asked == []
        given = httpx.get(url, headers={"Authorization": token}).json()
    assert (given["AccessKeyId"], given["SecretAccessKey"]) == ("AKIA", "secret")
    assert given["Token"] is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, headers={"Authorization": token})


RENEWING = """
import datetime, json, pathlib, sys
noted = pathlib.Path(__file__).with_name("asked")
asked = int(noted.read_text()) + 1 if noted.exists() else 1
noted.write_text(str(asked))
if asked > {most}:
    sys.exit("the login has ended")
end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)
print(json.dumps({{"Version": 1, "AccessKeyId": f"ASIA{{asked}}", "SecretAccessKey": "s",
                   "SessionToken": "t", "Expiration": end.isoformat()}}))
"""


def test_credentials_that_end_are_renewed_while_an_upload_runs(shell: Shell, aws: StandIn) -> None:
    shell.config(f"[default]\ncredential_process = {shell.program(RENEWING.format(most=99))}\n")
    # Two parts of s5cmd's 50 MiB. With this lease s5cmd asks before every request, as it does once
    # a minute otherwise.
    send(shell, shell.open(), size_bytes=60 << 20, lease_seconds=300)
    keys = [int(seen.access_key.removeprefix("ASIA")) for seen in aws.seen]
    assert [seen.query for seen in aws.seen] == [
        ("uploads",),
        ("partNumber", "uploadId"),
        ("partNumber", "uploadId"),
        ("uploadId",),
    ]
    assert keys[0] < keys[1]
    assert max(keys[1:3]) < keys[3]


def test_credentials_that_cannot_be_renewed_end_the_upload_with_their_own_reason(
    shell: Shell, aws: StandIn
) -> None:
    shell.config(f"[default]\ncredential_process = {shell.program(RENEWING.format(most=99))}\n")
    access = shell.open()
    asked = int((shell.home / "asked").read_text())
    shell.program(RENEWING.format(most=asked + 1))
    with pytest.raises(UserError) as caught:
        send(shell, access, size_bytes=60 << 20, lease_seconds=300)
    assert str(caught.value) == (
        "1 problem\n- the credentials could not be renewed during the upload: Error when "
        "retrieving credentials from custom-process: the login has ended [SW501]\n"
        "    Log in again, then run the command again: what has arrived is not sent twice."
    )
    assert len(aws.seen) == 1


def test_an_mfa_code_that_would_be_needed_again_is_told(shell: Shell, aws: StandIn) -> None:
    role_with_mfa(shell)
    access = shell.open()
    held = access._session.get_credentials()
    held._expiry_time = datetime.now(UTC) + timedelta(minutes=9)
    with pytest.raises(UserError) as caught:
        send(shell, access)
    assert str(caught.value) == (
        "1 problem\n- the credentials could not be renewed during the upload: Cannot refresh "
        "credentials: MFA token required. [SW501]\n"
        "    Run the command again with a new code: what has arrived is not sent twice. "
        "`duration_seconds` in the profile makes such credentials last longer."
    )


def no_such_program(shell: Shell) -> None:
    shell.config("[default]\ncredential_process = /no/such/program\n")


def a_program_that_babbles(shell: Shell) -> None:
    shell.config(f"[default]\ncredential_process = {shell.program('print(1, 2)')}\n")


def no_terminal_for_the_code(shell: Shell) -> None:
    role_with_mfa(shell)

    def at_the_end(_: str) -> str:
        raise EOFError

    type_codes(shell, at_the_end)


def login_without_awscrt(shell: Shell) -> None:
    def resolved(_: object) -> None:
        raise MissingDependencyException(
            msg="Using the login credential provider requires an additional dependency. You will "
            'need to pip install "botocore[crt]" before proceeding.'
        )

    shell.patch.setattr(botocore.session.Session, "get_credentials", resolved)


LOG_IN = f"Log in to account {ACCOUNT}, for example with `aws sso login`."


@pytest.mark.parametrize(
    ("kind", "message", "remedy"),
    [
        (no_such_program, "[Errno 2] No such file or directory: '/no/such/program'", LOG_IN),
        (a_program_that_babbles, "Extra data: line 1 column 3 (char 2)", LOG_IN),
        (
            no_terminal_for_the_code,
            "the profile asks for an MFA code, and there is no terminal to type it at",
            "Run the command in a terminal, or use a role that needs no MFA.",
        ),
        (
            login_without_awscrt,
            "Missing Dependency: Using the login credential provider requires an additional "
            'dependency. You will need to pip install "botocore[crt]" before proceeding.',
            'Run `pip install "botocore[crt]"`, or log in with another kind of profile.',
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_credentials_that_cannot_be_had_are_the_users_problem(
    shell: Shell, kind: Callable[[Shell], None], message: str, remedy: str
) -> None:
    kind(shell)
    with pytest.raises(UserError) as caught:
        shell.open()
    assert str(caught.value) == (
        "1 problem\n- no usable AWS credentials for environment `production`: "
        f"{message} [SW501]\n    {remedy}"
    )


def test_s5cmd_uses_boto3s_endpoint_and_certificates(shell: Shell, aws: StandIn) -> None:
    shell.patch.delenv("AWS_ENDPOINT_URL")
    environment_keys(shell)
    shell.config(
        f"[default]\nservices = mine\nca_bundle = /corp/ca.pem\nuse_fips_endpoint = true\n"
        f"[services mine]\ns3 =\n  endpoint_url = {aws.url}\n"
    )
    child = Access("eu-west-1", {}).process_environment()
    assert child["S3_ENDPOINT_URL"] == aws.url
    assert child["AWS_CA_BUNDLE"] == "/corp/ca.pem"
    assert child["AWS_USE_FIPS_ENDPOINT"] == "true"
    assert "AWS_USE_DUALSTACK_ENDPOINT" not in child
    assert "S3_ENDPOINT_URL" not in Access("eu-west-1", {"AWS_PROFILE": None}).process_environment()
