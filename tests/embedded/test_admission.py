"""Requests that a web page may send to the embedded AWS: none is answered."""

import http.client
from collections.abc import Iterator, Mapping

import pytest

from embedded_aws.clients import LoopbackClients
from embedded_aws.identity import MINUTE_PATH, STATUS_PATH
from embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws

SIGNED = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{}/aws4_request, SignedHeaders=host"
PAGE = {"Origin": "https://evil.example"}
CREATE_ROLE = "Action=CreateRole&RoleName=evil&AssumeRolePolicyDocument={}&Version=2010-05-08"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with embedded_aws(tmp_path_factory.mktemp("account")) as server:
        yield server


def send(
    server: EmbeddedAws,
    method: str = "POST",
    path: str = "/",
    *,
    headers: Mapping[str, str],
    body: str = "",
) -> tuple[int, str, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request(method, path, body, {**headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


@pytest.mark.parametrize(
    "sender",
    [
        PAGE,
        # A page in a sandbox, or a file.
        {"Origin": "null"},
        # Another server of this machine.
        {"Origin": "http://localhost:3000"},
        # A picture or a link of a page: browsers send no Origin with a GET.
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path", "service", "body"),
    [
        ("POST", "/", "iam", CREATE_ROLE),
        ("GET", f"/?{CREATE_ROLE}", "iam", ""),
        ("POST", "/", "codebuild", "{}"),
        ("PUT", "/bucket", "s3", ""),
        ("POST", "/endpoints/e/invocations", "sagemaker", "{}"),
        ("GET", STATUS_PATH, "", ""),
        ("POST", MINUTE_PATH, "", ""),
        ("OPTIONS", "/", "iam", ""),
    ],
)
def test_a_web_page_is_refused(
    server: EmbeddedAws, sender: Mapping[str, str], method: str, path: str, service: str, body: str
) -> None:
    headers = {**sender, "Authorization": SIGNED.format(service)} if service else sender
    status, text, answered = send(server, method, path, headers=headers, body=body)
    assert (status, text) == (403, "The embedded AWS answers no web page.")
    assert not [name for name in answered if name.lower().startswith("access-control")]


def test_nothing_of_a_refused_request_is_carried_out(server: EmbeddedAws) -> None:
    headers = {**PAGE, "Authorization": SIGNED.format("iam")}
    send(server, headers=headers, body=CREATE_ROLE)
    clients = LoopbackClients(server.connection)
    roles = clients.client("iam", "us-east-1").list_roles()["Roles"]
    clients.close()
    assert [role["RoleName"] for role in roles if role["RoleName"] == "evil"] == []


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "localhost.evil.example", "[::1]:1", ""]
)
def test_a_page_whose_name_was_bound_to_this_address_is_refused(
    server: EmbeddedAws, host: str
) -> None:
    host = host.format(port=server.port)
    status, text, _ = send(server, "GET", STATUS_PATH, headers={"Host": host})
    name = host.partition(":")[0]
    assert status == 403
    assert text == f"The embedded AWS has no name {name!r}: use localhost or 127.0.0.1."


@pytest.mark.parametrize(
    "path", ["/moto-api", "/moto-api/", "/moto-api/reset", "/moto-api/data.json"]
)
def test_the_pages_of_moto_are_not_there(server: EmbeddedAws, path: str) -> None:
    for method in ("GET", "POST"):
        assert send(server, method, path, headers={})[:2] == (
            403,
            "The embedded AWS has no /moto-api.",
        )


# A forwarded port has another number.
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "localhost:80"])
def test_programs_of_this_machine_are_answered(server: EmbeddedAws, name: str) -> None:
    headers = {
        "Host": name if ":" in name else f"{name}:{server.port}",
        "Sec-Fetch-Site": "none",
        "Authorization": server.connection.authorization(STATUS_PATH),
    }
    assert send(server, "GET", STATUS_PATH, headers=headers)[0] == 200
