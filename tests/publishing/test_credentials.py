"""An upload has the credentials that boto3 resolved, whatever they come from.

The real boto3, with a user's files and environment, and a stand-in for AWS that
notes who signed each request to S3.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import botocore.session
import pytest
from botocore.exceptions import MissingDependencyException

from slipway.access import Access
from slipway.errors import UserError
from slipway.planning.artifact_place import shared_place
from slipway.publishing.hashes import sha256_of
from slipway.publishing.store import ArtifactStore
from slipway.publishing.upload import Upload, upload
from tests.publishing.aws_stand_in import ACCOUNT, StandIn, started
from tests.publishing.credential_sources import (
    ENVIRONMENT,
    KINDS,
    Shell,
    role_with_mfa,
    type_codes,
)


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with started() as stand_in:
        yield stand_in


@pytest.fixture
def aws(server: StandIn) -> StandIn:
    server.seen.clear()
    server.actions.clear()
    server.credentials_given = 0
    return server


@pytest.fixture
def shell(tmp_path: Path, aws: StandIn, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, aws, monkeypatch)


def send(shell: Shell, access: Access, *, size_bytes: int = 5) -> set[str]:
    path = shell.home / "model.bin"
    with path.open("wb") as file:
        file.truncate(size_bytes)
    sent = set[str]()
    upload(
        [Upload(path, "model.bin", size_bytes, sha256_of(path))],
        digest="d",
        store=ArtifactStore(access.client("s3"), ENVIRONMENT, shared_place(ENVIRONMENT)),
        access=access,
        advance=lambda _: None,
        sent=sent,
    )
    return sent


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_upload_signs_with_what_boto3_resolved(
    shell: Shell,
    aws: StandIn,
    kind: Callable[[Shell], tuple[str, str]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    access_key, session_token = kind(shell)
    assert send(shell, shell.open()) == {"model.bin"}
    assert {(seen.access_key, seen.session_token) for seen in aws.seen} == {
        (access_key, session_token)
    }
    # An MFA code is asked for once, and a role is assumed once.
    assert aws.credentials_given <= 1
    assert capfd.readouterr() == ("", "")


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
    # Two parts. What ends in five minutes is renewed before every request.
    send(shell, shell.open(), size_bytes=70 << 20)
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
        send(shell, access, size_bytes=70 << 20)
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
