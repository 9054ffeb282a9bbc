"""boto3 clients that talk to the embedded AWS itself.

CloudFormation's resources are created through the same APIs that a user calls, as in the real
CloudFormation. A resource that these APIs refuse fails its stack with their message.
"""

import os
import threading
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from slipway.embedded_aws.identity import ACCESS_KEY_ID, Connection


class LoopbackClients:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        # The user's profile and configuration files are not read. A profile that does not exist
        # here, or a retry mode meant for the real AWS, must not break or change a client.
        isolated = {
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
        }
        self._session: Any = boto3.Session(
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=connection.secret_access_key,
            botocore_session=botocore.session.Session(session_vars=isolated),
        )
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def client(self, service: str, region: str) -> Any:
        # boto3's sessions are not thread-safe, its clients are.
        with self._lock:
            key = (service, region)
            if key not in self._clients:
                self._clients[key] = self._session.client(
                    service,
                    region_name=region,
                    endpoint_url=self.connection.url,
                    config=Config(
                        retries={"total_max_attempts": 1},
                        s3={"addressing_style": "path"},
                        # Otherwise boto3 presigns addresses in the old way.
                        signature_version="s3v4" if service == "s3" else None,
                        # Not the environment's: a proxy knows no loopback address.
                        proxies={},
                    ),
                )
            return self._clients[key]

    def close(self) -> None:
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.close()
