"""The Hub's real client against a stand-in of its API: resumed, verified, and no token told."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from slipway.codes.code import Code
from slipway.config.sections.artifacts import HubWeights
from slipway.errors import UserError
from slipway.planning.lock import LockedPart
from slipway.publishing.file_set import CONFIG, TOKENIZER, WEIGHTS, FileSet, require_whole
from slipway.publishing.hub import fetch, hub_facts
from slipway.publishing.selection import wanted
from slipway.publishing.weights import commit_recipe, publish_weights
from tests.publishing.checkpoints import safetensors
from tests.publishing.hub_stand_in import REPOSITORY, REVISION, Hub, serving
from tests.publishing.progress import Progress
from tests.support.projects import messages

LARGE = safetensors(bytes(range(256)) * 400)
# The client hands over what it reads in chunks of this size; less is lost when it breaks.
CHUNK_BYTES = 10 << 20
SEVERAL_CHUNKS = bytes(range(256)) * (24 << 12)
FILES = {
    "config.json": b'{"model_type": "gpt2"}',
    "model.safetensors": LARGE,
    "onnx/config.json": b"{}",
    "pytorch_model.bin": b"pickle",
}
OLD_DEFAULT = ["*.json", "*.model", "*.safetensors", "*.txt"]
TOKEN = "hf_abcdefghijklmnop"  # noqa: S105  # the stand-in's


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(dict(FILES))) as hub:
        yield hub


def weights(**changes: object) -> HubWeights:
    return HubWeights.model_validate(
        {"source": "hub", "repository": REPOSITORY, "revision": REVISION, **changes}
    )


def fetched(hub: Hub, directory: Path, token: str | None = None, **changes: object) -> Path:
    environment = {"HF_ENDPOINT": hub.url} | ({"HF_TOKEN": token} if token else {})
    return fetch(weights(**changes), directory, Progress(), environment)


def refusal(hub: Hub, directory: Path, token: str | None = None, **changes: object) -> str:
    with pytest.raises(UserError) as caught:
        fetched(hub, directory, token, **changes)
    (problem,) = caught.value.problems
    assert problem.field == ("artifacts", "weights")
    return f"{problem.message} / {problem.remedy}"


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_files_that_match_arrive_and_no_others(hub, tmp_path):
    progress = Progress()
    folder = fetch(weights(), tmp_path, progress, {"HF_ENDPOINT": hub.url})
    wanted = {name: FILES[name] for name in ("config.json", "model.safetensors")}
    assert content(folder) == wanted
    total = sum(map(len, wanted.values()))
    assert progress.totals == [("downloading", total)]
    assert progress.done_bytes == total
    assert content(tmp_path / "parts") == {}


def test_a_connection_that_breaks_goes_on_where_it_stopped(hub, tmp_path):
    hub.files["model.safetensors"] = SEVERAL_CHUNKS
    hub.break_after_bytes, hub.breaks = CHUNK_BYTES + 1000, 2
    assert content(fetched(hub, tmp_path))["model.safetensors"] == SEVERAL_CHUNKS
    assert [range_ for _, range_ in hub.asked_for("model.safetensors")] == [
        None, f"bytes={CHUNK_BYTES}-", f"bytes={2 * CHUNK_BYTES}-",
    ]  # fmt: skip


@pytest.mark.timeout(120)
def test_what_a_stopped_run_left_is_not_downloaded_again(hub, tmp_path):
    class Stopped(Progress):
        def advance(self, size_bytes: int) -> None:
            super().advance(size_bytes)
            if self.done_bytes > CHUNK_BYTES + 1000:
                raise KeyboardInterrupt

    hub.files["model.safetensors"] = SEVERAL_CHUNKS
    with pytest.raises(KeyboardInterrupt):
        fetch(weights(), tmp_path, Stopped(), {"HF_ENDPOINT": hub.url})
    (left,) = content(tmp_path / "parts").values()
    assert left == SEVERAL_CHUNKS[:CHUNK_BYTES]
    hub.requests.clear()
    progress = Progress()
    folder = fetch(weights(), tmp_path, progress, {"HF_ENDPOINT": hub.url})
    assert content(folder)["model.safetensors"] == SEVERAL_CHUNKS
    assert [range_ for _, range_ in hub.asked_for("model.safetensors")] == [f"bytes={CHUNK_BYTES}-"]
    # What was there as a whole was not downloaded; the selection reads a range of it.
    config = f"{REVISION}/config.json"
    assert all(range_ for _, path, range_, _ in hub.requests if path.endswith(config))
    assert progress.done_bytes == progress.totals[0][1]


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_other_content_than_the_commits_is_refused_and_downloaded_anew(hub, tmp_path, name):
    hub.spoil.add(name)
    assert refusal(hub, tmp_path) == (
        f"{name} of acme/gpt2 arrived with other content than the commit has / "
        "Run the command again; it is downloaded anew. If that does not help, something between "
        "here and the Hub changes it."
    )
    assert not (tmp_path / "files" / name).exists()
    hub.spoil.clear()
    assert content(fetched(hub, tmp_path))[name] == FILES[name]


def test_the_token_goes_to_the_hub_alone(hub, tmp_path, capfd):
    hub.token = TOKEN
    folder = fetched(hub, tmp_path, TOKEN)
    assert content(folder)["model.safetensors"] == LARGE
    assert {authorization for host, *_, authorization in hub.requests if host == "hub"} == {
        f"Bearer {TOKEN}"
    }
    assert {authorization for host, *_, authorization in hub.requests if host == "storage"} == {
        None
    }
    # Neither shown nor stored.
    assert TOKEN not in "".join(capfd.readouterr())
    assert all(TOKEN.encode() not in body for body in content(tmp_path).values())


def test_only_the_environments_token_is_used(hub, tmp_path, monkeypatch):
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    fetched(hub, tmp_path / "cache")
    assert {authorization for *_, authorization in hub.requests} == {None}


AGAIN = "Run the command again: what has arrived is not downloaded twice."
GATED = (
    "acme/gpt2 is gated / Accept its conditions at https://huggingface.co/acme/gpt2 and set "
    "HF_TOKEN to a token of the account that did."
)
LIMITED = (
    "the Hub lets this address send no more requests for now (429), about acme/gpt2 / Set "
    f"HF_TOKEN, with which it allows more, or wait {{}} seconds. {AGAIN}"
)
NOT_SHOWN = (
    "the Hub has no repository {}, or does not show it / Correct `repository`; where it is "
    "private, set HF_TOKEN to a token that may read it."
)


@pytest.mark.parametrize(
    ("state", "token", "changes", "said"),
    [
        ({}, None, {"repository": "acme/other"}, NOT_SHOWN.format("acme/other")),
        ({"token": TOKEN}, None, {}, NOT_SHOWN.format("acme/gpt2")),
        ({"token": TOKEN}, "hf_wrong_wrong_wrong", {},
         "the Hub does not take the token in HF_TOKEN / Set it to a token that is valid, or unset "
         "it for a public repository."),
        ({"token": TOKEN, "gated": True}, TOKEN, {},
         GATED),
        ({}, None, {"revision": "0" * 40},
         f"acme/gpt2 has no branch, tag or commit {'0' * 40} / Choose a commit of "
         "https://huggingface.co/acme/gpt2/commits/main: its owner may have rewritten the "
         "history."),
        # The listing of a gated repository is public.
        ({"gated": True, "hidden": False}, None, {}, GATED),
        ({"status": 403, "said": {"X-Error-Message": "the token has no such right"}}, None, {},
         "the Hub refuses acme/gpt2 (403): the token has no such right / Set HF_TOKEN to a token "
         "that may read it, and gated repositories too."),
        ({"lost": {"model.safetensors"}}, None, {},
         "the Hub lists a file of acme/gpt2 that it does not have (404) / Choose another revision, "
         "or ask its owner to upload the file again."),
        ({"status": 429}, None, {},
         "the Hub lets this address send no more requests for now (429), about acme/gpt2 / Set "
         "HF_TOKEN, with which it allows more, or wait five minutes. " + AGAIN),
        ({"status": 429, "said": {"Retry-After": "17"}}, None, {}, LIMITED.format(17)),
        ({"status": 429, "said": {"ratelimit": '"api";r=0;t=55'}}, None, {}, LIMITED.format(55)),
        ({"status": 503}, None, {},
         "the Hub answers 503 about acme/gpt2 / Run the command again: what has arrived is not "
         "downloaded twice."),
    ],
)  # fmt: skip
def test_a_hub_that_refuses(hub, tmp_path, monkeypatch, capfd, state, token, changes, said):
    # The client tries again for twenty seconds.
    monkeypatch.setattr("time.sleep", lambda _: None)
    for name, value in state.items():
        setattr(hub, name, value)
    assert refusal(hub, tmp_path, token, **changes) == said
    assert "hf_wrong" not in "".join(capfd.readouterr())


def test_patterns_that_match_nothing(hub, tmp_path):
    assert refusal(hub, tmp_path, allow_patterns=["*.gguf"]) == (
        "no file of acme/gpt2 matches `allow_patterns` / Name files with `allow_patterns`. It has "
        "4 files, for example config.json, model.safetensors, onnx/config.json, pytorch_model.bin."
    )
    hub.files = {"README.md": b"#"}
    assert refusal(hub, tmp_path).startswith("no file of acme/gpt2 is one that a loader reads / ")


def test_a_name_that_leads_out_of_the_directory(hub, tmp_path):
    hub.files["../../escape.json"] = b"{}"
    assert refusal(hub, tmp_path, allow_patterns=["*.json"]) == (
        "acme/gpt2 has a file whose name cannot be used: '../../escape.json' / Leave it out with "
        "`allow_patterns`."
    )
    assert not (tmp_path.parent / "escape.json").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full(hub, tmp_path, monkeypatch, number):
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    assert refusal(hub, tmp_path) == (
        f"acme/gpt2 could not be downloaded: {os.strerror(number)} / Make room. Run the command "
        "again: what has arrived is not downloaded twice."
    )


def test_a_hub_that_does_not_answer(tmp_path, monkeypatch):
    # The client tries again for twenty seconds.
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serving(Hub({})) as gone:
        pass
    assert refusal(gone, tmp_path) == (
        f"the Hub does not answer: ConnectError, [Errno 111] Connection refused / {AGAIN}"
    )


def test_a_hub_that_is_slow(hub, tmp_path, monkeypatch):
    # The client tries six times, and waits between them.
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.05)
    hub.hangs = True
    assert refusal(hub, tmp_path) == (
        "the Hub is too slow: nothing came in time / HF_HUB_DOWNLOAD_TIMEOUT sets after how many "
        f"seconds it is given up. {AGAIN}"
    )
    with pytest.raises(UserError, match="the Hub is too slow"):
        hub_facts(REPOSITORY, "main", {"HF_ENDPOINT": hub.url})


def test_a_wait_that_the_hub_asks_for_is_told(hub, tmp_path, monkeypatch, caplog):
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        hub.status = None

    monkeypatch.setattr("time.sleep", sleep)
    hub.status, hub.said = 429, {"Retry-After": "17"}
    assert content(fetched(hub, tmp_path))["model.safetensors"] == LARGE
    assert waited == [18]
    assert caplog.messages == ["Rate limited. Waiting 18.0s before retry [Retry 1/5]."]


@pytest.fixture
def publish(hub, tmp_path, store, monkeypatch):
    """Publishes the commit; returns the part, the bytes that moved, and the progress."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)

    def publish(*needs: str) -> tuple[LockedPart, int, Progress]:
        store.progress = Progress()
        found = publish_weights(
            weights(), tmp_path, store, lambda files: require_whole(wanted(files, weights()), needs)
        )
        return *found, store.progress

    return publish


def test_a_commit_is_published_once(hub, tmp_path, keys, publish):
    part, sent, progress = publish()
    files = {name: FILES[name] for name in ("config.json", "model.safetensors")}
    prefix = f"artifacts/{part.digest}/files/"
    assert {
        key.removeprefix(prefix): body for key, body in keys().items() if key.startswith(prefix)
    } == files
    assert (part.source, part.target, part.file_count) == (f"{REPOSITORY}@{REVISION}", "any", 2)
    assert sent == part.size_bytes == sum(map(len, files.values()))
    assert progress.notes == [
        "Left out of acme/gpt2: pytorch_model.bin, onnx/ (2 of 4 files; 0.0 GB are the same "
        "weights in another format)."
    ]
    # Nothing is left on this disk.
    assert list((tmp_path / ".slipway" / "hub").iterdir()) == []
    hub.requests.clear()
    again, sent, progress = publish()
    assert (again, sent, hub.requests) == (part, 0, [])
    assert progress.notes == [f"{REPOSITORY}@{REVISION} is there already."]
    # What another version of the default published is not taken for this one's.
    assert commit_recipe(weights()) != commit_recipe(weights(allow_patterns=OLD_DEFAULT))


def test_a_checkpoint_that_is_not_whole_is_refused_before_it_is_fetched(hub, tmp_path):
    hub.files["model.safetensors.index.json"] = b'{"weight_map": {"a": "model-1.safetensors"}}'
    hub.files["model-1.safetensors"] = LARGE[:-1]
    del hub.files["model.safetensors"], hub.files["config.json"]

    def select(files: FileSet) -> FileSet:
        return require_whole(wanted(files, weights()), (CONFIG, WEIGHTS))

    with pytest.raises(UserError) as caught:
        fetch(weights(), tmp_path, Progress(), {"HF_ENDPOINT": hub.url}, select)
    assert messages(caught.value) == [
        f"acme/gpt2/model-1.safetensors has {len(LARGE) - 1} bytes, and its header tells of "
        f"{len(LARGE)}",
        "acme/gpt2 has no config.json",
    ]
    assert content(tmp_path) == {}
    assert len(hub.asked_for("model-1.safetensors")) == 2


def test_a_commit_that_another_container_published_is_checked_again(publish):
    publish()
    with pytest.raises(UserError, match="has no tokenizer"):
        publish(TOKENIZER)


def test_files_that_do_not_fit_on_the_disk_are_not_begun(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(UserError) as caught:
        fetched(hub, tmp_path)
    (problem,) = caught.value.problems
    assert problem.code is Code.NO_DISK_SPACE
    assert problem.message == (f"the files need 0.0 GB of disk in {tmp_path}, and 0.0 GB are free")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
