"""Who the embedded AWS answers: its owner alone, who has the secret that was made at its start."""

import resource
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import boto3
import httpx
import pytest
from botocore import UNSIGNED
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from slipway.embedded_aws.identity import ACCESS_KEY_ID, ACCOUNT_ID, MINUTE_PATH, STATUS_PATH
from slipway.embedded_aws.listener import Listener
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import SECRET_ACCESS_KEY

REGION = "us-east-1"
OWNER = Credentials(ACCESS_KEY_ID, SECRET_ACCESS_KEY)
# One of each protocol, and what a stranger would do there.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "iam": ("list_roles", {}),
    "sts": ("get_caller_identity", {}),
    "cloudformation": ("describe_stacks", {}),
    "codebuild": ("list_builds", {}),
    "sagemaker": ("list_endpoints", {}),
    "sagemaker-runtime": ("invoke_endpoint", {"EndpointName": "e", "Body": b"x"}),
    "lambda": ("list_functions", {}),
    "secretsmanager": ("list_secrets", {}),
    "s3": ("list_buckets", {}),
}
JSON = ("UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationToken")
IN_XML = ("InvalidClientTokenId", "SignatureDoesNotMatch", "MissingAuthenticationToken")
CODES = {
    "iam": IN_XML,
    "sts": IN_XML,
    "cloudformation": IN_XML,
    "s3": ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"),
}


def client(
    server: EmbeddedAws,
    service: str,
    key: str | None,
    secret: str = "x",  # noqa: S107
    token: str | None = None,
) -> Any:
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=server.connection.url,
        region_name=REGION,
        aws_access_key_id=key or "x",
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            signature_version=("s3v4" if service == "s3" else "v4") if key else UNSIGNED,
        ),
    )


def refusal(client: Any, service: str) -> tuple[int, str, str]:
    operation, parameters = CALLS[service]
    with pytest.raises(ClientError) as caught:
        getattr(client, operation)(**parameters)
    answer: Any = caught.value.response
    error = answer["Error"]
    return answer["ResponseMetadata"]["HTTPStatusCode"], error["Code"], error["Message"]


@pytest.mark.parametrize("service", CALLS)
def test_every_service_takes_its_owners_key_only(server: EmbeddedAws, service: str) -> None:
    unknown, wrong, missing = CODES.get(service, JSON)
    for key, code in (("AKIAINVENTED", unknown), (ACCESS_KEY_ID, wrong), (None, missing)):
        status, found, message = refusal(client(server, service, key), service)
        if key is None and service in ("sagemaker-runtime", "lambda"):
            # Nothing but their paths tells that the answer is JSON.
            code = "403"
        assert (status, found.removesuffix("Exception")) == (403, code.removesuffix("Exception"))
        assert code == "403" or message.endswith("set the variables of `slipway local env`.")
    operation, parameters = CALLS[service]
    owners = client(server, service, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    if service == "sagemaker-runtime":
        with pytest.raises(ClientError, match="Endpoint e of account 123456789012 not found"):
            owners.invoke_endpoint(**parameters)
    else:
        assert getattr(owners, operation)(**parameters)


def test_keys_of_users_and_roles_are_taken_by_every_service(server: EmbeddedAws) -> None:
    iam = client(server, "iam", ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    iam.create_user(UserName="ci")
    made = iam.create_access_key(UserName="ci")["AccessKey"]
    sts = client(server, "sts", ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    role = f"arn:aws:iam::{ACCOUNT_ID}:role/publisher"
    lent = sts.assume_role(RoleArn=role, RoleSessionName="ci")["Credentials"]
    for key, secret, token in (
        (made["AccessKeyId"], made["SecretAccessKey"], None),
        (lent["AccessKeyId"], lent["SecretAccessKey"], lent["SessionToken"]),
    ):
        for service, code in (("codebuild", JSON[1]), ("s3", CODES["s3"][1])):
            getattr(client(server, service, key, secret, token), CALLS[service][0])()
            wrong = client(server, service, key, f"{secret}x", token)
            assert refusal(wrong, service)[1] == code
    iam.update_access_key(UserName="ci", AccessKeyId=made["AccessKeyId"], Status="Inactive")
    idle = client(server, "codebuild", made["AccessKeyId"], made["SecretAccessKey"])
    assert refusal(idle, "codebuild")[1] == "UnrecognizedClientException"
    # Constants of moto, which anybody knows.
    known = sts.get_session_token()["Credentials"]
    stranger = client(server, "codebuild", known["AccessKeyId"], known["SecretAccessKey"])
    assert refusal(stranger, "codebuild")[1] == "UnrecognizedClientException"


@pytest.mark.parametrize("names_digest", [False, True])
def test_a_signed_request_is_answered_for_its_own_body_only(
    server: EmbeddedAws, names_digest: bool
) -> None:
    """The SDK for JavaScript names the body's digest in a header, the one for Python does not."""
    url, body = f"{server.connection.url}/", b"Action=ListRoles&Version=2010-05-08"
    signed = AWSRequest(
        "POST", url, {"Content-Type": "application/x-www-form-urlencoded"}, data=body
    )
    signer = SigV4Auth(OWNER, "iam", REGION)
    if names_digest:
        signed.headers["X-Amz-Content-SHA256"] = signer.payload(signed.prepare())
    signer.add_auth(signed)
    headers = dict(signed.headers)
    assert httpx.post(url, content=body, headers=headers).status_code == 200
    other = body.replace(b"ListRoles", b"ListUsers")
    assert httpx.post(url, content=other, headers=headers).status_code == 403
    assert httpx.post(f"{url}?Marker=a", content=body, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "header",
    [
        "é",
        "AWS4-HMAC-SHA256 Credential=embedded-aws/20260101/us-east-1/iam/aws4_request, "
        "SignedHeaders=host;é, Signature=0",
        "AWS4-HMAC-SHA256 Credential=embedded-aws/20260101/us-east-1/s3/aws4_request, "
        f"SignedHeaders=host, Signature={'0' * 64}",
        "Bearer é",
    ],
)
@pytest.mark.parametrize("path", ["/", STATUS_PATH])
def test_odd_signatures_are_refused(server: EmbeddedAws, header: str, path: str) -> None:
    headers = {"Authorization": header.encode()}
    assert httpx.get(server.connection.url + path, headers=headers).status_code == 403


def test_a_presigned_address_is_valid_for_its_object_and_its_time(server: EmbeddedAws) -> None:
    s3 = client(server, "s3", ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    s3.create_bucket(Bucket="lent")
    s3.put_object(Bucket="lent", Key="a b", Body=b"ours")
    named = {"Bucket": "lent", "Key": "a b"}
    address = s3.generate_presigned_url("get_object", named)
    assert httpx.get(address).content == b"ours"
    for other in (
        address.replace("a%20b", "c"),
        address.replace("X-Amz-Expires=3600", "X-Amz-Expires=36000"),
        address.partition("&X-Amz-Expires")[0],
        f"{server.connection.url}/lent/a%20b",
        f"{server.connection.url}/lent/a%20b?AWSAccessKeyId={ACCESS_KEY_ID}&Signature=x&Expires=2",
        s3.generate_presigned_url("get_object", named, ExpiresIn=-1),
        client(server, "s3", ACCESS_KEY_ID).generate_presigned_url("get_object", named),
    ):
        assert httpx.get(other).status_code == 403, other


def test_a_presigned_address_gives_no_other_right(server: EmbeddedAws) -> None:
    s3 = client(server, "s3", ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    for bucket in ("drop", "private"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="private", Key="k", Body=b"ours")
    put = s3.generate_presigned_url("put_object", {"Bucket": "drop", "Key": "in"})
    # A header that nobody signed would copy another object.
    assert httpx.put(put, headers={"x-amz-copy-source": "/private/k"}).status_code == 403
    buckets = s3.generate_presigned_url("list_buckets")
    assert httpx.get(buckets).status_code == 200
    # moto would take the service from this header.
    of_another = {"Authorization": "X a/b/us-east-1/secretsmanager/c"}
    assert httpx.get(buckets, headers=of_another).status_code == 403
    target = {"X-Amz-Target": "secretsmanager.ListSecrets"}
    assert httpx.get(buckets, headers=target).status_code == 403


def sent_at(server: EmbeddedAws, moment: datetime) -> httpx.Response:
    url, signer = f"{server.connection.url}/", SigV4Auth(OWNER, "codebuild", REGION)
    time = f"{moment:%Y%m%dT%H%M%SZ}"
    target = {"X-Amz-Target": "CodeBuild_20161006.ListBuilds", "Content-Type": "application/json"}
    request = AWSRequest("POST", url, {**target, "X-Amz-Date": time}, data=b"{}")
    request.context["timestamp"] = time
    signature = signer.signature(
        signer.string_to_sign(request, signer.canonical_request(request)), request
    )
    signer._inject_signature_to_request(request, signature)
    return httpx.post(url, content=b"{}", headers=dict(request.headers))


@pytest.mark.parametrize(("age", "status"), [(0, 200), (800, 200), (-800, 200), (1000, 403)])
def test_a_signature_in_a_header_is_valid_for_a_quarter_of_an_hour(
    server: EmbeddedAws, age: int, status: int
) -> None:
    assert sent_at(server, datetime.now(UTC) - timedelta(seconds=age)).status_code == status


def test_a_signature_is_valid_by_the_account_s_time_too() -> None:
    """SDKs for JavaScript sign with the time that the last answer told."""
    ahead_seconds = 7200
    listener: Any = Listener(
        port=0, secret_access_key=SECRET_ACCESS_KEY, clock=lambda: time.time() + ahead_seconds
    )
    listener.start()
    try:
        refused = []
        for early in (0, ahead_seconds, ahead_seconds / 2):
            moment = datetime.now(UTC) + timedelta(seconds=early)
            answer = sent_at(listener, moment)
            refused.append(answer.status_code == 403)
        told = parsedate_to_datetime(answer.headers["Date"])
    finally:
        listener.stop()
    assert refused == [False, False, True]
    lead_seconds = (told - datetime.now(UTC)).total_seconds()
    assert ahead_seconds - 60 < lead_seconds <= ahead_seconds


def test_a_stranger_takes_no_memory(server: EmbeddedAws) -> None:
    """The key's id is known, so that a request can be read up to the comparison."""
    scope = f"Credential={ACCESS_KEY_ID}/20260101/{REGION}/iam/aws4_request"
    headers = {
        "X-Long": "x" * 60_000,
        "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders={';'.join(['x-long'] * 4000)}, "
        f"Signature={'0' * 64}",
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert httpx.post(server.connection.url, headers=headers).status_code == 403
    for length in (10**9, 10**12):
        signed = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature={'0' * 64}"
        kind = "Content-Type: application/x-www-form-urlencoded"
        lines = ["Host: localhost", f"Content-Length: {length}", kind, f"Authorization: {signed}"]
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall("\r\n".join(["POST / HTTP/1.1", *lines, "", ""]).encode())
            with stranger.makefile("rb") as answer:
                assert b"RequestEntityTooLarge" in answer.read()
    # In KiB; on macOS in bytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_nobody_else_listens_at_the_other_loopback_address(server: EmbeddedAws) -> None:
    with socket.socket(socket.AF_INET6) as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="Address already in use"):
            squatter.bind(("::1", server.port))
    with (
        socket.create_server(("::1", 0), family=socket.AF_INET6) as taken,
        pytest.raises(OSError, match="Address already in use"),
    ):
        Listener(port=taken.getsockname()[1], secret_access_key=SECRET_ACCESS_KEY)


def test_own_paths_ask_for_a_token_of_that_path(server: EmbeddedAws) -> None:
    def ask(**headers: str) -> int:
        return httpx.get(server.connection.url + STATUS_PATH, headers=headers).status_code

    token = server.connection.authorization(STATUS_PATH)
    assert ask(Authorization=token) == 200
    assert {
        ask(),
        ask(Authorization=f"Bearer {SECRET_ACCESS_KEY}"),
        ask(Authorization=server.connection.authorization(MINUTE_PATH)),
    } == {403}
