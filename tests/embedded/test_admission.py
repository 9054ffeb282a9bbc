"""Requests that are refused at the door: of web pages, and such as nobody can answer."""

import contextlib
import functools
import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from botocore.exceptions import ClientError
from moto.iam.models import iam_backends

from slipway.embedded_aws.admission import find_refusal
from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import ACCOUNT_ID, MINUTE_PATH, STATUS_PATH
from slipway.embedded_aws.server import EmbeddedAws

FULL = """
import resource, sys, time
from slipway.embedded_aws.listener import Listener
listener = Listener(port=0, secret_access_key="secret")
listener.start()
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
print(listener.port, flush=True)
for _ in sys.stdin:
    begun = time.process_time()
    time.sleep(1)
    print(time.process_time() - begun, flush=True)
listener.stop()
"""
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


def test_nothing_of_a_refused_request_is_carried_out(
    server: EmbeddedAws, clients: LoopbackClients
) -> None:
    scope = "Credential=x/20260101/us-east-1/iam/aws4_request"
    headers = {
        "Origin": "https://evil.example",
        "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0",
    }
    url = server.connection.url
    for method, path in (("POST", "/"), ("OPTIONS", "/"), ("GET", STATUS_PATH)):
        answer = httpx.request(method, url + path, headers=headers, content=CREATE_ROLE)
        assert (answer.status_code, answer.text) == (403, NO_PAGE)
        assert not any(name.startswith("access-control") for name in answer.headers)
    assert_no_evil(clients)


def assert_no_evil(clients: LoopbackClients) -> None:
    roles = clients.client("iam", "us-east-1").list_roles()["Roles"]
    assert "evil" not in [role["RoleName"] for role in roles]


# It tries what needs no permission of the other server, and what asks for one first.
PAGE = """<body>trying<script>
const url = "URL", role = "Action=CreateRole&RoleName=evil&AssumeRolePolicyDocument={}";
const tries = [
  ["no-cors", "", {method: "POST", mode: "no-cors", body: role}],
  ["cors", "STATUS", {}],
  ["signed", "", {method: "POST", headers: {Authorization: "x"}, body: role}],
  ["minute", "MINUTE", {method: "POST", mode: "no-cors"}],
];
(async () => {
  const found = [];
  for (const [name, path, options] of tries) {
    try {
      const answer = await fetch(url + path, options);
      found.push(name + " " + answer.type + " " + answer.status);
    } catch (error) { found.push(name + " refused"); }
  }
  document.body.innerText = found.join(", ");
})();
</script></body>"""


@pytest.fixture
def page(server: EmbeddedAws, tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "page"
    folder.mkdir()
    text = PAGE.replace("URL", server.connection.url).replace("STATUS", STATUS_PATH)
    (folder / "index.html").write_text(text.replace("MINUTE", MINUTE_PATH))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        yield f"http://localhost:{pages.server_port}/"
        pages.shutdown()


def shown(url: str, folder: Path, *options: str) -> str:
    """Returns a page as Chromium has it after its script."""
    profile = f"--user-data-dir={folder / 'profile'}"
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", profile, *options]
    ended = subprocess.run(
        [*command, "--virtual-time-budget=20000", "--dump-dom", url],
        env=os.environ | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.browser
def test_a_page_of_another_origin_changes_and_reads_nothing(
    server: EmbeddedAws, clients: LoopbackClients, page: str, tmp_path: Path
) -> None:
    # "opaque 0": the request was sent, and the page does not see that it was refused.
    assert "no-cors opaque 0, cors refused, signed refused, minute opaque 0" in shown(
        page, tmp_path
    ).replace("<br>", "")
    assert_no_evil(clients)
    assert server.pass_minute()["ahead_seconds"] <= 60


@pytest.mark.browser
def test_a_name_that_was_bound_to_this_address_shows_nothing(
    server: EmbeddedAws, tmp_path: Path
) -> None:
    url = f"http://evil.example:{server.port}{STATUS_PATH}"
    found = shown(url, tmp_path, "--host-resolver-rules=MAP evil.example 127.0.0.1")
    assert "The embedded AWS has no name 'evil.example'" in found


@pytest.mark.browser
def test_a_user_who_opens_a_presigned_address_sees_the_object(
    clients: LoopbackClients, tmp_path: Path
) -> None:
    s3 = clients.client("s3", "us-east-1")
    s3.create_bucket(Bucket="pages")
    s3.put_object(Bucket="pages", Key="k.txt", Body=b"for you", ContentType="text/plain")
    address = s3.generate_presigned_url("get_object", {"Bucket": "pages", "Key": "k.txt"})
    assert "for you" in shown(address, tmp_path)


@pytest.mark.parametrize(
    ("service", "operation", "parameters"),
    [
        # JSON: the CDK CLI asks this after some deployments that failed.
        ("cloudtrail", "lookup_events", {}),
        # XML
        ("iam", "get_service_last_accessed_details", {"JobId": "1" * 36}),
    ],
)
def test_an_operation_that_is_not_there_is_refused_at_once(
    clients: LoopbackClients, service: str, operation: str, parameters: dict[str, Any]
) -> None:
    client = clients.client(service, "us-east-1")
    with pytest.raises(ClientError) as caught:
        getattr(client, operation)(**parameters)
    assert caught.value.response["Error"] == {
        "Code": "UnknownOperationException",
        "Message": f"The embedded AWS does not implement this request to {service}: "
        f"The {operation} action has not been implemented. docs/embedded-aws.md lists what it "
        "does.",
        **({} if service == "cloudtrail" else {"Type": "Sender"}),
    }
    answered = caught.value.response["ResponseMetadata"]
    assert (answered["HTTPStatusCode"], answered["RetryAttempts"]) == (400, 0)


def test_the_first_request_does_not_read_the_policies_of_every_partition(
    clients: LoopbackClients,
) -> None:
    """It would take half a second."""
    assert clients.client("sts", "us-east-1").get_caller_identity()["Account"] == ACCOUNT_ID
    assert set(iam_backends[ACCOUNT_ID]) <= {"aws"}


def test_at_its_limit_of_open_files_it_waits() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FULL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        port = int(server.stdout.readline())
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            server.stdin.write("measure\n")
            server.stdin.flush()
            assert float(server.stdout.readline()) < 0.2
        # The connections have ended, and it answers again.
        assert httpx.get(f"http://localhost:{port}/", timeout=20).status_code == 403
        server.stdin.close()
        assert server.wait(20) == 0


@pytest.mark.parametrize("path", ["/bucket/key", "/endpoints/a/invocations"])
@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: abc",
        "Content-Length: -1",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_body_whose_end_nobody_can_tell_is_refused(
    clients: LoopbackClients, headers: str, path: str
) -> None:
    port = urlsplit(clients.connection.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{headers}\r\n\r\n"
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b"\r\n")[0].split()[1] == b"400"
    assert answer.count(b"HTTP/1.1 ") == 1
