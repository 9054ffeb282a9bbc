"""A stand-in for the parts of AWS that give out credentials, and an S3 that notes who asks.

moto has no container endpoint, and its S3 does not say with which credentials a request came.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from flask import Flask, abort, request
from werkzeug.serving import make_server

ACCOUNT = "123456789012"
CONTAINER_TOKEN = "the-containers-token"  # noqa: S105  # worth nothing
INSTANCE_TOKEN = "the-instances-token"  # noqa: S105  # worth nothing
INSTANCE_ROLES = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True)
class Seen:
    """One request to S3, with the credentials that signed it, and the names in its query."""

    access_key: str
    session_token: str
    query: tuple[str, ...]


@dataclass
class StandIn:
    """What the stand-in was asked, in order, and how often it gave out credentials."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    credentials_given: int = 0

    def issue(self, source: str) -> dict[str, str]:
        self.credentials_given += 1
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        return {
            "AccessKeyId": f"ASIA{source}",
            "SecretAccessKey": f"secret-of-{source}",
            "Token": f"token-of-{source}",
            "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


@contextmanager
def started() -> Iterator[StandIn]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    stand_in = StandIn()
    server = make_server("127.0.0.1", 0, _application(stand_in), threaded=True)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _application(aws: StandIn) -> Flask:
    application = Flask("aws")

    @application.get("/container")
    def container() -> dict[str, str]:
        if request.headers.get("Authorization") != CONTAINER_TOKEN:
            abort(401)
        return aws.issue("CONTAINER")

    @application.put("/latest/api/token")
    def instance_token() -> str:
        return INSTANCE_TOKEN

    @application.get(INSTANCE_ROLES, defaults={"role": ""})
    @application.get(f"{INSTANCE_ROLES}<role>")
    def instance(role: str) -> dict[str, str] | str:
        assert request.headers["x-aws-ec2-metadata-token"] == INSTANCE_TOKEN
        return {"Code": "Success", **aws.issue("INSTANCE")} if role else "publisher"

    @application.post("/")
    def sts() -> str:
        action = request.form["Action"]
        result = f"<Account>{ACCOUNT}</Account><Arn>a</Arn><UserId>u</UserId>"
        if action != "GetCallerIdentity":
            given = aws.issue(action.upper())
            given["SessionToken"] = given.pop("Token")
            fields = "".join(f"<{name}>{value}</{name}>" for name, value in given.items())
            result = (
                f"<Credentials>{fields}</Credentials><AssumedRoleUser>"
                f"<Arn>arn:aws:sts::{ACCOUNT}:assumed-role/r/s</Arn>"
                "<AssumedRoleId>i:s</AssumedRoleId></AssumedRoleUser>"
            )
        answer = f"<{action}Result>{result}</{action}Result>"
        return f"<{action}Response>{answer}</{action}Response>"

    @application.route("/<bucket>/<path:key>", methods=["DELETE", "POST", "PUT"])
    def s3(bucket: str, key: str) -> tuple[str, dict[str, str]]:
        request.get_data()
        if request.method != "DELETE":
            signed = re.search(r"Credential=([^/]+)/", request.headers.get("Authorization", ""))
            access_key = signed.group(1) if signed else ""
            session_token = request.headers.get("X-Amz-Security-Token", "")
            aws.seen.append(Seen(access_key, session_token, tuple(sorted(request.args))))
        begins = "uploads" in request.args
        name = f"{'Initiate' if begins else 'Complete'}MultipartUploadResult"
        content = "<UploadId>1</UploadId>" if begins else "<ETag>e</ETag>"
        answer = f"<{name}>{content}</{name}>" if request.method == "POST" else ""
        return answer, {"ETag": '"e"'}

    return application
