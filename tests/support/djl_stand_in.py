"""Stands for DJL Serving with vLLM: it reads adapters, and its answers tell which one was asked.

    djl_stand_in.py -f CONFIG -s MODEL_DIRECTORY

It has the adapter API of djl-serving's docs (serving/docs/adapters_api.md), the folder `adapters`
beside weights, and the two ways to name an adapter: SageMaker's header, and the body's `adapters`.
In place of a text it answers the digest of the weights that a real engine would use. Of weights in
S3 it copies the adapters alone.
"""

import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import boto3

PROPERTIES: dict[str, str] = {}
ADAPTERS: dict[str, str] = {}


class RefusedError(Exception):
    """The message says why."""


def register(name: str, directory: Path) -> None:
    if PROPERTIES.get("option.enable_lora") != "true":
        raise RefusedError("LoRA is not enabled.")
    config = json.loads((directory / "adapter_config.json").read_text())
    highest = int(PROPERTIES.get("option.max_lora_rank", "16"))
    if config["r"] > highest:
        raise RefusedError(f"LoRA rank {config['r']} is greater than max_lora_rank {highest}.")
    weights = (directory / "adapter_model.safetensors").read_bytes()
    ADAPTERS[name] = hashlib.sha256(weights).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(200, {})

    def do_DELETE(self) -> None:
        del ADAPTERS[self.path.rpartition("/")[2]]
        self.answer(200, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if self.path.startswith("/adapters?"):
                asked = dict(parse_qsl(urlsplit(self.path).query))
                register(asked["name"], Path(asked["src"]))
                self.answer(200, {})
                return
            request = json.loads(body)
            named = self.headers.get("X-Amzn-SageMaker-Adapter-Identifier")
            named = named or request.get("adapters")
            if named is not None and named not in ADAPTERS:
                raise RefusedError(f"LoRA adapter {named} not found in registry.")
            text = "the base" if named is None else ADAPTERS[named]
            self.answer(200, {"generated_text": text})
        except (RefusedError, OSError) as error:
            self.answer(424, {"error": str(error)})

    def answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def copy_adapters(uri: str, directory: Path) -> None:
    """Copies the folder `adapters` beside weights in S3, of which a real server copies all."""
    place = urlsplit(uri)
    bucket, prefix = place.netloc, place.path.lstrip("/")
    s3: Any = boto3.client("s3")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}adapters/").get("Contents", ())
    for item in listed:
        path = directory / item["Key"].removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, item["Key"], str(path))


def main() -> None:
    model = Path(sys.argv[sys.argv.index("-s") + 1])
    lines = (model / "serving.properties").read_text().splitlines()
    PROPERTIES.update(line.split("=", 1) for line in lines)
    copy_adapters(PROPERTIES["option.model_id"], Path.cwd())
    for directory in sorted(Path.cwd().glob("adapters/*")):
        register(directory.name, directory)
    port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever(poll_interval=0.02)


def write_home(home: Path) -> dict[str, str]:
    """Writes what stands for an installed DJL Serving and a Java; returns their variables."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for program, command in (
        ("serving", f'exec "{sys.executable}" "{Path(__file__).resolve()}" "$@"'),
        ("java", "exit 1"),
    ):
        path = home / "bin" / program
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)
    return {"DJL_SERVING_HOME": str(home), "JAVA_HOME": str(home)}


if __name__ == "__main__":
    main()
