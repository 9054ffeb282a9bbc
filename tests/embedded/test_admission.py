"""Requests that a web page may send to the embedded AWS: none is answered."""

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from slipway.embedded_aws.admission import find_refusal
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import MINUTE_PATH, STATUS_PATH
from tests.support.accounts import embedded_aws

NO_PAGE = "The embedded AWS answers no web page."
CREATE_ROLE = "Action=CreateRole&RoleName=evil&AssumeRolePolicyDocument={}&Version=2010-05-08"


def refusal(path: str = "/", **headers: str) -> str | None:
    names = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    return find_refusal({"PATH_INFO": path, "HTTP_HOST": "localhost:4566", **names})


@pytest.mark.parametrize(
    "sender",
    [
        {"origin": "https://evil.example"},
        # A page in a sandbox, or a file.
        {"origin": "null"},
        # Another server of this machine.
        {"origin": "http://localhost:3000"},
        # A picture or a link of a page: browsers send no Origin with a GET.
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_web_page_is_refused(sender: Mapping[str, str]) -> None:
    for path in ("/", "/bucket", "/endpoints/e/invocations", STATUS_PATH, MINUTE_PATH):
        assert refusal(path, **sender) == NO_PAGE


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4566", "localhost.evil.example", "[::1]:1", ""]
)
def test_a_page_whose_name_was_bound_to_this_address_is_refused(host: str) -> None:
    name = host.partition(":")[0]
    assert refusal(host=host) == (
        f"The embedded AWS has no name {name!r}: use localhost or 127.0.0.1."
    )


@pytest.mark.parametrize(
    "path", ["/moto-api", "/moto-api/", "/moto-api/reset", "/moto-api/data.json"]
)
def test_the_pages_of_moto_are_not_there(path: str) -> None:
    assert refusal(path) == "The embedded AWS has no /moto-api."


# A forwarded port has another number.
@pytest.mark.parametrize("host", ["localhost:4566", "127.0.0.1:4566", "localhost:80"])
def test_programs_of_this_machine_are_answered(host: str) -> None:
    assert refusal(host=host) is None
    assert refusal(host=host, sec_fetch_site="none") is None


def test_nothing_of_a_refused_request_is_carried_out(tmp_path: Path) -> None:
    scope = "Credential=x/20260101/us-east-1/iam/aws4_request"
    headers = {
        "Origin": "https://evil.example",
        "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0",
    }
    with embedded_aws(tmp_path) as server:
        url = server.connection.url
        for method, path in (("POST", "/"), ("OPTIONS", "/"), ("GET", STATUS_PATH)):
            answer = httpx.request(method, url + path, headers=headers, content=CREATE_ROLE)
            assert (answer.status_code, answer.text) == (403, NO_PAGE)
            allowed = [name for name in answer.headers if name.startswith("access-control")]
            assert allowed == []
        clients = LoopbackClients(server.connection)
        roles = clients.client("iam", "us-east-1").list_roles()["Roles"]
        clients.close()
    assert "evil" not in [role["RoleName"] for role in roles]
