"""`slipway publish` killed at any moment: nothing half done counts, and the next run finishes."""

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access, open_access
from slipway.errors import UserError
from slipway.planning.artifact_place import shared_place
from slipway.planning.lock import Lock
from slipway.project import Project
from slipway.publishing.manifest import Manifest, Snapshot
from slipway.publishing.publish import Published, publish
from slipway.publishing.s5cmd import Upload, upload
from slipway.publishing.store import ArtifactStore
from tests.embedded.faults.line import Line
from tests.publishing.progress import Progress
from tests.support.processes import children, command_line, is_running, kill_tree
from tests.support.projects import LOCAL
from tests.support.waiting import eventually
from tests.support.workbench import MODEL, Workbench

pytestmark = [pytest.mark.size("all"), pytest.mark.timeout(300)]

NAME = "many"
BUCKET = LOCAL.artifact_bucket
FILES = 80
SEED = 20_240_817
POINTS = 10


def seeded(number: int) -> random.Random:
    return random.Random(SEED + number)  # noqa: S311  # the same files and points every time


class Publishing:
    """One model of many files, the bucket it goes to, and what must hold whatever is killed."""

    def __init__(self, bench: Workbench, line: Line) -> None:
        self.bench = bench
        self.line = line
        # Past the line: what the tests look at is there even while it is held.
        self.s3 = bench.client("s3")
        self.directory = bench.project / "samples" / NAME
        self.lock = bench.project / "model_configs" / f"{NAME}.lock.json"
        self.begun: subprocess.Popen[str] | None = None
        # Artifacts that were published in full: digest to their objects.
        self.published: dict[str, dict[str, Any]] = {}

    def write(self, chosen: random.Random, *sizes_bytes: int) -> Manifest:
        """Makes all files anew: by default many, most of them small and every 20th not."""
        if self.directory.exists():
            shutil.rmtree(self.directory)
        sizes = sizes_bytes or [
            1_500_000 if number % 20 == 0 else chosen.choice((200, 5_000, 20_000, 60_000))
            for number in range(FILES)
        ]
        for number, size in enumerate(sizes):
            # A model without it is refused.
            name = f"layer-{number % 10}/{number:03}.bin" if number else "config.json"
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = chosen.randbytes(size)
            if not number:
                noise = content.hex()[: size - len('{"noise": ""}')]
                content = json.dumps({"noise": noise}).encode()
            path.write_bytes(content)
        return Snapshot.of(self.directory, f"samples/{NAME}").manifest

    def held_at(self, size_bytes: int) -> subprocess.Popen[str]:
        """Begins to publish and returns once so much has been sent; nothing moves then."""
        self.line.hold_after(size_bytes)
        self.begun = self.bench.popen("slipway", "publish", NAME)
        self.line.wait_held()
        return self.begun

    def end(self) -> None:
        """Leaves nothing of a test to the next one, also where it failed."""
        if self.begun is not None:
            kill_tree(self.begun)
        self.line.cut()

    def finish(self) -> Published:
        """Does what `slipway publish` does, without another start of the program."""
        project = Project(self.bench.project)
        environment = project.environment("local")
        access = open_access(environment, project.root)
        return publish(project, NAME, environment, access, Progress())

    def objects(self, digest: str, root: str = "artifacts/") -> dict[str, Any]:
        """What a listing has of one artifact, by the key after its prefix."""
        prefix = f"{root}{digest}/"
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        items = (item for page in pages for item in page.get("Contents", ()))
        return {item["Key"].removeprefix(prefix): item for item in items}

    def arrived(self, manifest: Manifest) -> dict[str, int]:
        """Which files of an artifact were sent: path to size in bytes. Half a file never is."""
        found = self.objects(manifest.digest, "incoming/shared/")
        for path, stored in found.items():
            content = (self.directory / path).read_bytes()
            # The ETag of an object that was sent whole.
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            assert (stored["Size"], stored["ETag"]) == (len(content), f'"{md5}"'), path
        return {path: stored["Size"] for path, stored in found.items()}

    def verify(self, digest: str) -> None:
        """Reads an artifact back: the manifest is of that digest, and every file as it says."""
        body = self._get(f"artifacts/{digest}/manifest.json")
        assert hashlib.sha256(body).hexdigest() == digest
        rows = json.loads(body)["files"]
        for path, size_bytes, sha256 in rows:
            content = self._get(f"artifacts/{digest}/files/{path}")
            assert (len(content), hashlib.sha256(content).hexdigest()) == (size_bytes, sha256)
        files = {f"files/{path}" for path, _, _ in rows}
        assert set(self.objects(digest)) == {*files, "manifest.json"}

    def _get(self, key: str) -> bytes:
        return self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def files_of_the_project(self) -> set[Path]:
        """What git would see, the model's own files apart."""
        return {
            path
            for path in self.bench.project.rglob("*")
            if path.is_file()
            and {".slipway", "__pycache__", NAME}.isdisjoint(
                path.relative_to(self.bench.project).parts
            )
        }

    def finish_and_check(self, manifest: Manifest, *, reads_back: bool = True) -> int:
        """Lets the next run finish the job; returns how many bytes it sent."""
        result = self.finish()
        assert result.digest == manifest.digest
        assert result.file_count == len(manifest.entries)
        assert result.size_bytes == manifest.size_bytes
        assert result.lock_changed is True
        if reads_back:
            self.verify(manifest.digest)
        else:
            files = {f"files/{entry.path}" for entry in manifest.entries}
            assert set(self.objects(manifest.digest)) == {*files, "manifest.json"}
            body = self._get(f"artifacts/{manifest.digest}/manifest.json")
            assert hashlib.sha256(body).hexdigest() == manifest.digest
        locked = Project(self.bench.project).lock(NAME).sample
        assert locked.compiled.digest == manifest.digest
        self.published[manifest.digest] = self.objects(manifest.digest)
        return result.uploaded_bytes

    def untouched(self) -> Callable[[], None]:
        """Returns a check that lock, files and published objects are as they are now."""
        lock, files = self.lock.read_bytes(), self.files_of_the_project()

        def check() -> None:
            assert self.lock.read_bytes() == lock
            assert Lock.model_validate_json(lock).render().encode() == lock
            assert self.files_of_the_project() == files
            digest, objects = list(self.published.items())[-1]
            assert self.objects(digest) == objects

        return check


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publishing]:
    """An account with the bucket, which is all that publishing needs, and one artifact in it."""
    with Workbench(tmp_path_factory.mktemp("publishing")) as bench, Line(bench.state.port) as line:
        text = bench.config(MODEL).read_text("utf-8")
        text = text.replace(f"name: {MODEL}", f"name: {NAME}")
        bench.config(NAME).write_text(
            text.replace(f"samples/{MODEL}/model", f"samples/{NAME}"), "utf-8"
        )
        # What slipway and s5cmd find the embedded AWS by now leads over the line.
        found_by = bench.project / ".slipway" / "local" / "state.json"
        state = json.loads(found_by.read_text())
        found_by.write_text(json.dumps(state | {"url": f"http://localhost:{line.port}"}))
        publishing = Publishing(bench, line)
        publishing.s3.create_bucket(Bucket=BUCKET)
        manifest = publishing.write(seeded(0))
        assert publishing.finish_and_check(manifest) == manifest.size_bytes
        yield publishing


@pytest.fixture
def publishing(prepared: Publishing) -> Iterator[Publishing]:
    yield prepared
    prepared.end()


def test_killed_at_ten_random_points(publishing):
    """Slipway and s5cmd die together, as when a terminal's or a job's process group is killed."""
    chosen = seeded(5)
    for number in range(POINTS):
        manifest = publishing.write(chosen)
        point = chosen.randrange(manifest.size_bytes)
        check_untouched = publishing.untouched()
        kill_tree(publishing.held_at(point))
        publishing.line.cut()
        arrived = publishing.arrived(manifest)
        print(
            f"seed {SEED}: killed after {point} of {manifest.size_bytes} bytes, "
            f"{len(arrived)} of {FILES} files there"
        )
        check_untouched()
        # Nothing is visible before S3 has hashed it, and all is sent before that.
        assert publishing.objects(manifest.digest) == {}
        sent = publishing.finish_and_check(manifest, reads_back=number == 0)
        # What had passed the line may have been stored after it was looked for.
        missing = manifest.size_bytes - sum(arrived.values())
        assert manifest.size_bytes - point <= sent <= missing
    for digest, objects in publishing.published.items():
        assert publishing.objects(digest) == objects
    publishing.verify(next(iter(publishing.published)))


# Killed as a function is called: what comes before it is done, and what comes after it is not.
# Ends at the first call whose last argument ends with a word.
KILLED_AT = """
import importlib, os, signal, sys
owner, _, function = sys.argv.pop(1).rpartition(".")
word = sys.argv.pop(1)
module, _, name = owner.rpartition(".")
owner = getattr(importlib.import_module(module), name)
original = getattr(owner, function)
def call(*arguments, **named):
    if str([*arguments, *named.values()][-1]).endswith(word):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **named)
setattr(owner, function, call)
from slipway.cli.main import main
main()
"""


def scratch_files(publishing: Publishing) -> set[str]:
    """What lies in .slipway beside the kept hashes."""
    return {path.name for path in (publishing.bench.project / ".slipway").iterdir()} - {"hashes"}


@pytest.mark.parametrize(
    ("point", "committed", "left"),
    [
        (("slipway.publishing.verified_copies._Upload.complete", ""), False, 0),
        (("slipway.publishing.verified_copies.Copies._advance", "20000"), False, 0),
        (("slipway.publishing.store.ArtifactStore.commit", ""), False, 0),
        (("slipway.project.Project.lock", ""), True, 0),
        (("pathlib.Path.replace", ".lock.json"), True, 1),
    ],
    ids=["first copy", "second copy", "manifest", "lock", "lock renamed"],
)
def test_killed_before(publishing, point, committed, left):
    manifest = publishing.write(seeded(10 + len(publishing.published)), *[20_000] * 10)
    check_untouched = publishing.untouched()
    before = len(scratch_files(publishing))
    killed = publishing.bench.run(sys.executable, "-c", KILLED_AT, *point, "publish", NAME)
    assert killed.returncode == -signal.SIGKILL, killed.stdout
    check_untouched()
    assert sum(publishing.arrived(manifest).values()) == manifest.size_bytes
    assert ("manifest.json" in publishing.objects(manifest.digest)) is committed
    # What the kill leaves is where git and the next run do not look.
    assert len(scratch_files(publishing)) == before + left
    assert publishing.finish_and_check(manifest) == 0


def test_s5cmd_outlives_slipway_by_one_message_at_most(publishing):
    """A kill of slipway alone: s5cmd says which file has arrived to a pipe without a reader.

    It has 256 files under way at a time, and so never comes to the last of these.
    """
    manifest = publishing.write(seeded(2), *[2_000] * 320)
    check_untouched = publishing.untouched()
    process = publishing.held_at(100_000)
    (s5cmd,) = children(process.pid)
    assert command_line(s5cmd)[0].endswith("s5cmd")
    process.kill()
    process.wait()
    # It may be gone by now: of an answer that came before the line was held.
    publishing.line.release()
    eventually(lambda: not is_running(s5cmd))
    arrived = publishing.arrived(manifest)
    check_untouched()
    assert "manifest.json" not in publishing.objects(manifest.digest)
    missing = manifest.size_bytes - sum(arrived.values())
    assert 0 < publishing.finish_and_check(manifest) <= missing


def test_slipway_outlives_s5cmd_and_says_so(publishing):
    manifest = publishing.write(seeded(3), *[300_000] * 20)
    check_untouched = publishing.untouched()
    process = publishing.held_at(manifest.size_bytes // 2)
    (s5cmd,) = children(process.pid)
    os.kill(s5cmd, signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    publishing.line.cut()
    assert process.returncode == 1
    assert output == (
        "1 problem\n"
        "- an upload failed: s5cmd was ended by SIGKILL [SW630]\n"
        "    Run the command again: what has arrived is not sent twice.\n"
    )
    check_untouched()
    assert "manifest.json" not in publishing.objects(manifest.digest)
    publishing.finish_and_check(manifest)


def test_a_file_that_goes_in_parts_is_there_as_a_whole_or_not_at_all(publishing):
    # s5cmd's parts have 50 MiB.
    manifest = publishing.write(seeded(4), 200, 60 * 2**20)
    check_untouched = publishing.untouched()
    kill_tree(publishing.held_at(manifest.size_bytes * 9 // 10))
    publishing.line.cut()
    check_untouched()
    assert publishing.objects(manifest.digest) == {}
    assert publishing.arrived(manifest).keys() <= {"config.json"}
    # The foundation's lifecycle rule ends what S3 keeps of an upload that nobody finishes.
    uploads = publishing.s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert len([each for each in uploads if each["Key"].startswith("incoming/")]) == 1
    assert publishing.finish_and_check(manifest) >= 60 * 2**20


def test_without_the_network_ten_failures_are_told_and_the_rest_counted(publishing, tmp_path):
    uploads = []
    for number in range(12):
        path = tmp_path / str(number)
        path.write_bytes(b"x")
        uploads.append(Upload(path, f"s3://no-such-bucket/{number}", 1))
    root = publishing.bench.project
    access = open_access(Project(root).environment("local"), root)
    with pytest.raises(UserError) as caught:
        upload(uploads, access=access, on_complete=lambda _: None)
    messages = [problem.message for problem in caught.value.problems]
    assert len(messages) == 11
    assert all(message.startswith("an upload failed: NoSuchBucket: ") for message in messages[:10])
    assert messages[10] == "2 more uploads failed"


def test_an_account_that_ends_meanwhile_is_the_users_problem():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    gone = {
        "AWS_ENDPOINT_URL": f"http://localhost:{port}",
        "AWS_ACCESS_KEY_ID": "gone",
        "AWS_SECRET_ACCESS_KEY": "gone",
    }
    store = ArtifactStore(Access(LOCAL.region, gone), LOCAL, shared_place(LOCAL), Progress())
    manifest = Manifest(())
    for act in (
        store.require_bucket,
        lambda: store.holds(manifest.digest),
        lambda: store.missing(manifest.digest, manifest),
        lambda: store.commit(manifest),
    ):
        with pytest.raises(UserError) as caught:
            act()
        (problem,) = caught.value.problems
        assert problem.message.startswith(
            f"the artifact bucket {BUCKET} does not answer: Could not connect to the endpoint URL"
        )
        assert problem.remedy == (
            "Run the command again once it does: what has arrived is not sent twice."
        )
