"""A publish leaves out the same weights in another format, unless they are asked for."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.config.sections.artifacts import PathWeights, S3Weights
from slipway.errors import UserError
from slipway.planning.artifact_place import shared_place
from slipway.publishing.manifest import Snapshot
from slipway.publishing.s5cmd import upload
from slipway.publishing.store import ArtifactStore
from slipway.publishing.weights import publish_weights
from tests.publishing.progress import Changing, Progress, run
from tests.publishing.promotions import FILES, STAGING
from tests.support.projects import LOCAL, messages, write_files

pytestmark = pytest.mark.usefixtures("checkpoint")

AGAIN = {"original/consolidated.00.pth": b"w" * 9, "original/params.json": b"{}",
         "pytorch_model.bin": b"w"}  # fmt: skip
NOTE = (
    "Left out of build/checkpoint: original/, pytorch_model.bin (3 of 8 files; 0.0 GB are the same "
    "weights in another format)."
)


def published(
    root: Path, access: Access, progress: Progress | None = None, **changes: Any
) -> tuple[str, list[str]]:
    weights = PathWeights(source="path", path="build/checkpoint", **changes)
    progress = progress or Progress()
    store = ArtifactStore(access, LOCAL, shared_place(LOCAL), progress)
    part, _ = publish_weights(weights, root, store)
    return part.digest, progress.notes


def test_of_a_folder_the_other_formats_are_left_out(root, access, keys):
    folder = root / "build/checkpoint"
    before, notes = published(root, access)
    # As it was published when nothing was left out.
    assert (before, notes) == (Snapshot.of(folder, "c").manifest.digest, [])
    write_files(folder, AGAIN)
    assert published(root, access) == (before, [NOTE])
    found = {key.partition("/files/")[2] for key in keys() if "/files/" in key}
    assert found == FILES.keys()
    everything, notes = published(root, access, allow_patterns=["*"])
    assert (everything, notes) == (Snapshot.of(folder, "c").manifest.digest, [])


def test_a_folder_with_files_that_are_left_out_is_not_sent_as_a_whole(root, access, monkeypatch):
    monkeypatch.setattr("slipway.publishing.s5cmd._LEAST_FILES_OF_A_FOLDER", 1)
    sent = []
    monkeypatch.setattr(
        "slipway.publishing.directory.upload",
        lambda uploads, *, folder, **options: sent.append(folder) or upload(uploads, **options),
    )
    published(root, access)
    assert [folder.source for folder in sent] == [root / "build/checkpoint"]
    write_files(root / "build/checkpoint", AGAIN | {"generation_config.json": b"{}"})
    published(root, access)
    assert sent[1:] == [None]


def test_a_file_that_is_added_meanwhile_is_noticed_beside_others(root, access):
    folder = write_files(root / "build/checkpoint", AGAIN)
    changing = Changing("uploading begins", lambda: (folder / "new.json").write_bytes(b"{}"))
    with pytest.raises(UserError, match=r"changed while it was published: new\.json"):
        published(root, access, changing)


def test_of_objects_the_other_formats_are_left_out(root, access, store):
    client = access.client("s3")
    client.create_bucket(Bucket="my-models")
    for name, body in (FILES | AGAIN).items():
        client.put_object(Bucket="my-models", Key=f"c/{name}", Body=body)
    digest, _ = published(root, access)
    part, _ = publish_weights(S3Weights(source="s3", uri="s3://my-models/c/"), root, store)
    assert part.digest == digest
    assert store.progress.notes == [NOTE.replace("build/checkpoint", "s3://my-models/c")]


def test_an_option_that_names_the_format_gets_every_file(root, account):
    write_files(root / "build/checkpoint", AGAIN)
    config = root / "model_configs" / "tiny.yaml"
    settings = "  dtype: fp16\n  options: {load_format: mistral}"
    config.write_text(config.read_text().replace("  dtype: fp16", settings))
    progress = Progress()
    run(root, account, STAGING, progress)
    assert progress.notes == []


def test_a_shard_that_is_missing_is_named_before_anything_is_hashed(root, account):
    folder = root / "build/checkpoint"
    index = b'{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model.safetensors"}}'
    write_files(folder, {"model.safetensors.index.json": index})
    shutil.move(folder / "model.safetensors", folder / "model-00002-of-00002.safetensors")
    progress = Progress()
    with pytest.raises(UserError) as caught:
        run(root, account, STAGING, progress)
    assert messages(caught.value) == [
        "build/checkpoint lacks model-00001-of-00002.safetensors, model.safetensors, which "
        "model.safetensors.index.json names"
    ]
    assert progress.totals == []
