"""What pages do in a real browser to an embedded AWS of its user."""

import functools
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import MINUTE_PATH, STATUS_PATH
from slipway.embedded_aws.server import EmbeddedAws
from tests.support.accounts import embedded_aws

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

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
def server(tmp_path: Path) -> Iterator[EmbeddedAws]:
    with embedded_aws(tmp_path / "account") as server:
        yield server


@pytest.fixture
def page(server: EmbeddedAws, tmp_path: Path) -> Iterator[str]:
    """The address of a page on another port, which is another origin."""
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


def test_a_page_of_another_origin_changes_and_reads_nothing(
    server: EmbeddedAws, page: str, tmp_path: Path
) -> None:
    # "opaque 0": the request was sent, and the page does not see that it was refused.
    assert "no-cors opaque 0, cors refused, signed refused, minute opaque 0" in shown(
        page, tmp_path
    ).replace("<br>", "")
    clients = LoopbackClients(server.connection)
    roles = clients.client("iam", "us-east-1").list_roles()["Roles"]
    clients.close()
    assert "evil" not in [role["RoleName"] for role in roles]
    assert server.pass_minute()["ahead_seconds"] <= 60


def test_a_name_that_was_bound_to_this_address_shows_nothing(
    server: EmbeddedAws, tmp_path: Path
) -> None:
    url = f"http://evil.example:{server.port}{STATUS_PATH}"
    found = shown(url, tmp_path, "--host-resolver-rules=MAP evil.example 127.0.0.1")
    assert "The embedded AWS has no name 'evil.example'" in found


def test_a_user_who_opens_a_presigned_address_sees_the_object(
    server: EmbeddedAws, tmp_path: Path
) -> None:
    clients = LoopbackClients(server.connection)
    s3 = clients.client("s3", "us-east-1")
    s3.create_bucket(Bucket="pages")
    s3.put_object(Bucket="pages", Key="k.txt", Body=b"for you", ContentType="text/plain")
    address = s3.generate_presigned_url("get_object", {"Bucket": "pages", "Key": "k.txt"})
    assert "for you" in shown(address, tmp_path)
    clients.close()
