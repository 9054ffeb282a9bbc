"""Promotion: production gets the bytes that staging tested, verified, or nothing."""

import json
import shutil
from pathlib import Path

import pytest

from slipway import java_properties
from slipway.access import Access
from slipway.planning.artifact_place import artifact_place
from slipway.project import Project
from slipway.publishing.publish import Published
from slipway.rights.commands import promotion_policy
from tests.publishing.checkpoints import safetensors
from tests.publishing.progress import Progress
from tests.publishing.promotions import (
    FILES,
    LMI,
    NO_ISOLATION,
    SMALL_BYTES,
    STAGING,
    WEIGHTS,
    contents,
    published,
    refusal,
    run,
    weights_key,
)
from tests.support.command_line import Run
from tests.support.projects import PRODUCTION, config_text, write_files
from tests.support.recorded_calls import RecordedCalls

pytestmark = pytest.mark.usefixtures("checkpoint", "small_limit")


def test_production_gets_the_bytes_and_its_own_package(root: Path, account: Access) -> None:
    tested = published(root, account)
    progress = Progress()
    result = run(root, account, progress)
    before, after = contents(account, STAGING), contents(account, PRODUCTION)
    package = f"artifacts/{tested.digest}/files/serving.properties"
    assert {key: body for key, body in before.items() if key != package} == {
        key: body for key, body in after.items() if key != package
    }
    properties = java_properties.parse(after[package])
    assert properties["option.model_id"] == (
        f"s3://{PRODUCTION.artifact_bucket}/{weights_key(root, 'files/')}"
    )
    lock = Project(root).lock("tiny").environments or {}
    assert lock["production"] == lock["staging"]
    size_bytes = sum(map(len, FILES.values()))
    assert progress.totals[0] == ("copying", size_bytes)
    assert result == Published(
        digest=tested.digest,
        size_bytes=tested.size_bytes,
        file_count=1,
        source="the config",
        target="any",
        weights_digest=tested.weights_digest,
        uploaded_bytes=size_bytes + len(after[package]),
        lock_changed=True,
        promoted_from="staging",
    )
    assert Project(root).plan("tiny", PRODUCTION).artifact.digest == tested.digest
    progress = Progress()
    again = run(root, account, progress)
    assert (again.uploaded_bytes, again.lock_changed, progress.totals) == (
        0, False, [("copying", 0), ("uploading", 0)],
    )  # fmt: skip


def test_each_model_of_two_variants_is_promoted(root: Path, account: Access, command: Run) -> None:
    other = root / "build/candidate"
    shutil.copytree(root / "build/checkpoint", other)
    (other / "model.safetensors").write_bytes(safetensors(b"candidate"))
    own = "{name: candidate, weight: 1, artifacts: {weights: {path: build/candidate}}}"
    variants = f"  variants: [{{name: stable, weight: 9}}, {own}]\n"
    changed = (NO_ISOLATION[0], NO_ISOLATION[1] + variants)
    (root / "model_configs/tiny.yaml").write_text(config_text("tiny", LMI, WEIGHTS, changed))
    assert command("publish", "tiny", "--env", "staging")[0] == 0
    promotion = ("publish", "tiny", "--env", "production", "--from", "staging", "--json")
    code, output, errors = command(*promotion)
    assert code == 0, errors
    told = json.loads(output)
    tested = Project(root).plan("tiny", STAGING)
    promoted = Project(root).plan("tiny", PRODUCTION)
    digests = [each.weights.digest for each in promoted.every_served if each.weights]
    assert digests == [each.weights.digest for each in tested.every_served if each.weights]
    own_told = told["variants"]["candidate"]
    assert digests == [told["weights_digest"], own_told["weights_digest"]]
    assert len({*digests}) == 2
    assert (told["promoted_from"], own_told["promoted_from"]) == ("staging", "staging")
    there = contents(account, PRODUCTION)
    key = f"artifacts/{digests[1]}/files/model.safetensors"
    assert there[key] == (other / "model.safetensors").read_bytes()


def test_a_stopped_promotion_goes_on_and_leaves_no_manifest(root: Path, account: Access) -> None:
    published(root, account)

    class Stopped(Progress):
        def advance(self, size_bytes: int) -> None:
            super().advance(size_bytes)
            if size_bytes > SMALL_BYTES:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(root, account, Stopped())
    assert "production" not in (Project(root).lock("tiny").environments or {})
    arrived = contents(account, PRODUCTION)
    assert weights_key(root, "files/model.safetensors") in arrived
    assert not [key for key in arrived if key.endswith("manifest.json")]
    progress = Progress()
    result = run(root, account, progress)
    assert dict(progress.totals)["copying"] < SMALL_BYTES
    assert result.lock_changed is True


def test_a_changed_script_is_another_package(root: Path, account: Access) -> None:
    scripted = (LMI[0], f"{LMI[1]}  script: handlers/tiny\n")
    path = root / "model_configs/tiny.yaml"
    path.write_text(config_text("tiny", scripted, WEIGHTS, NO_ISOLATION), "utf-8")
    write_files(root, {"handlers/tiny/model.py": "def handle(inputs): ...\n"})
    published(root, account)
    write_files(root, {"handlers/tiny/model.py": "def handle(inputs): return 1\n"})
    assert refusal(root, account) == [
        (
            "the package of code that this checkout makes is not the one published to `staging`",
            "Check out the commit that was published to `staging`, or run `slipway publish tiny "
            "--env staging` and test again.",
        )
    ]
    assert contents(account, PRODUCTION) == {}


def test_an_artifact_of_files_keeps_its_one_entry_in_the_lock(root: Path, account: Access) -> None:
    (root / "model_configs/tiny.yaml").write_text(config_text("tiny"), "utf-8")
    write_files(root / "build/tiny", {"model.plan": b"engine", "config.json": b"{}"})
    tested = published(root, account)
    result = run(root, account)
    assert (result.digest, result.lock_changed) == (tested.digest, False)
    assert contents(account, PRODUCTION) == contents(account, STAGING)


def test_the_policy_is_what_a_promotion_needs(root: Path, account: Access) -> None:
    published(root, account)
    access = account.in_region(account._region)
    recorded = RecordedCalls(access, f"{PRODUCTION.region}:{PRODUCTION.account}")
    run(root, access)
    # A damaged file, so that an upload is given up.
    client = account.client("s3")
    for key in contents(account, PRODUCTION):
        client.delete_object(Bucket=PRODUCTION.artifact_bucket, Key=key)
    key = weights_key(root, "files/model.safetensors")
    body = b"x" + FILES["model.safetensors"][1:]
    client.put_object(Bucket=STAGING.artifact_bucket, Key=key, Body=body)
    refusal(root, access)
    config = Project(root).config("tiny", "production").config
    policy = promotion_policy(
        PRODUCTION,
        artifact_place(config, PRODUCTION),
        source=STAGING,
        source_place=artifact_place(config, STAGING),
        has_recipes=False,
    )
    assert recorded.denied_by(policy) == set()
    assert recorded.unused_of(policy) == set()


def test_the_command_promotes(root: Path, account: Access, command: Run) -> None:
    size = f"{published(root, account).size_bytes} bytes in 1 file"
    promotion = ("publish", "tiny", "--env", "production", "--from", "staging")
    code, output, errors = command(*promotion)
    assert (code, errors) == (0, "")
    first, _, _, last = output.splitlines()
    assert first == f"Promoted tiny from staging to production: {size}, 524.7 kB copied."
    assert last == "model_configs/tiny.lock.json changed: commit it."
    code, output, _ = command(*promotion, "--json")
    told = json.loads(output)
    assert (code, told["promoted_from"], told["uploaded_bytes"]) == (0, "staging", 0)
    code, output, _ = command(*promotion[:1], "--all", *promotion[2:])
    assert (code, output.splitlines()[0]) == (
        0,
        f"Promoted tiny from staging to production: {size}, nothing to copy, it was all there.",
    )
