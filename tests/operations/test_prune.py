"""`slipway prune`: only what is old and has no reference goes."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.image_sources import image_digest
from slipway.planning.artifact_place import own_place, shared_place
from slipway.planning.lock import Lock
from slipway.pruning import Unused, delete, find_references, find_unused
from slipway.rights.commands import prune_policy
from tests.support.accounts import access_to, forget_accounts, object_storage
from tests.support.images import put_image
from tests.support.projects import LOCAL, write_project
from tests.support.recorded_calls import RecordedCalls
from tests.support.repositories import commit, git, make_repository
from tests.support.stacks import tags_of

DIGESTS = [f"{number:x}" * 64 for number in range(10)]
LATER = timedelta(days=2)
REPOSITORY = "slipway/tensorrt"
ROLE = "arn:aws:iam::123456789012:role/model"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with object_storage() as url:
        yield url


@pytest.fixture
def access(url: str) -> Access:
    forget_accounts()
    found = access_to(url)
    found.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in a git repository."""
    root = write_project(tmp_path, {})
    make_repository(root)
    commit(root)
    return root


def lock(root: Path, name: str, digest: str) -> None:
    part = {"digest": digest, "size_bytes": 1, "file_count": 1, "source": "x", "target": "cpu"}
    artifact = {"inputs_digest": "0" * 64, "compiled": part}
    folder = root / "model_configs"
    folder.mkdir(exist_ok=True)
    text = Lock.model_validate({"sample": artifact}).render()
    (folder / f"{name}.lock.json").write_text(text)


def put(access: Access, digest: str, model: str | None = None, **files: bytes) -> str:
    place = shared_place(LOCAL) if model is None else own_place(model, LOCAL)
    s3 = access.client("s3")
    for name, body in (files or {"model.onnx": b"weights"}).items():
        key = f"{place.files_prefix(digest)}{name}"
        s3.put_object(Bucket=place.bucket, Key=key, Body=body)
    s3.put_object(Bucket=place.bucket, Key=place.manifest_key(digest), Body=b"{}")
    return f"s3://{place.bucket}/{place.artifacts_prefix}{digest}/"


def unused(
    root: Path, access: Access, *refs: str, later: timedelta = LATER
) -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in items(root, access, *refs, later=later)]


def items(root: Path, access: Access, *refs: str, later: timedelta = LATER) -> list[Unused]:
    references = find_references(root, refs, access)
    return find_unused(LOCAL, references, access, datetime.now(UTC) + later)


def keys(access: Access) -> list[str]:
    found = access.client("s3").list_objects_v2(Bucket=LOCAL.artifact_bucket)
    return [item["Key"] for item in found.get("Contents", ())]


def test_an_artifact_without_a_lock_goes_after_a_day(root: Path, access: Access) -> None:
    shared, isolated = put(access, DIGESTS[1]), put(access, DIGESTS[2], "tiny")
    expected = [("artifact", shared), ("artifact", isolated)]
    assert unused(root, access) == sorted(expected)
    assert unused(root, access, later=timedelta(hours=23)) == []


def test_locks_of_the_working_tree_and_of_every_ref_count(root: Path, access: Access) -> None:
    for digest in DIGESTS[1:6]:
        put(access, digest)
    lock(root, "tagged", DIGESTS[1])
    commit(root)
    git(root, "tag", "v1")
    git(root, "switch", "--create=other")
    (root / "model_configs/tagged.lock.json").unlink()
    lock(root, "branch", DIGESTS[2])
    commit(root)
    git(root, "switch", "main")
    git(root, "reset", "--hard", "HEAD~1")
    lock(root, "uncommitted", DIGESTS[3])

    def left(*refs: str) -> list[int]:
        names = {name for _, name in unused(root, access, *refs)}
        return [n for n in range(1, 6) if any(DIGESTS[n] in name for name in names)]

    assert left() == [4, 5]
    assert left("main") == [1, 2, 4, 5]
    assert left("v1") == [2, 4, 5]
    assert left("v1", "other") == [4, 5]


def test_a_project_in_a_folder_of_a_repository_and_a_worktree(
    tmp_path: Path, access: Access
) -> None:
    root = tmp_path / "teams" / "search"
    root.mkdir(parents=True)
    write_project(root, {})
    git(tmp_path, "init", "--initial-branch=main")
    lock(root, "one", DIGESTS[1])
    put(access, DIGESTS[1])
    image(access, f"1-{image_digest(root, 'lmi')}")
    commit(tmp_path)
    (root / "model_configs/one.lock.json").unlink()
    (root / "containers/lmi/Dockerfile").write_text("FROM other\n")
    assert unused(root, access) == []
    git(tmp_path, "worktree", "add", "-b", "other", "elsewhere")
    worktree = tmp_path / "elsewhere/teams/search"
    commit(root)
    (worktree / "model_configs/one.lock.json").unlink()
    (worktree / "containers/lmi/Dockerfile").write_text("FROM other\n")
    assert unused(worktree, access, "other") == []
    assert len(unused(worktree, access, "main")) == 2


def test_without_git_the_working_tree_counts(tmp_path: Path, access: Access) -> None:
    root = write_project(tmp_path, {})
    put(access, DIGESTS[1])
    put(access, DIGESTS[2])
    lock(root, "one", DIGESTS[1])
    assert [name for _, name in unused(root, access)] == [
        f"s3://{LOCAL.artifact_bucket}/artifacts/{DIGESTS[2]}/"
    ]
    assert find_references(root, [], access).refs == []


def test_a_ref_that_is_not_there_deletes_nothing(root: Path, access: Access) -> None:
    for ref in ("nowhere", "--output=x", ""):
        with pytest.raises(UserError, match="git has no commit"):
            find_references(root, [ref], access)


def model(access: Access, name: str, **container: Any) -> None:
    access.client("sagemaker").create_model(
        ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "image", **container}
    )


def test_a_model_of_the_account_keeps_its_artifact_and_its_image(
    root: Path, access: Access
) -> None:
    address = put(access, DIGESTS[1])
    source = {"S3Uri": f"{address}files/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    model(access, "live", ModelDataSource={"S3DataSource": source})
    put(access, DIGESTS[2])
    model(access, "variable", Environment={"OPTION_MODEL_ID": put(access, DIGESTS[3])})
    image(access, "served-1")
    image(access, "old-1")
    registry = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}"
    model(access, "image", Image=f"{registry}:served-1")
    assert [name.rstrip("/")[-3:] for _, name in unused(root, access)] == ["222", "d-1"]


def test_a_package_keeps_the_weights_that_it_names(root: Path, access: Access) -> None:
    weights = put(access, DIGESTS[1])
    settings = f"option.model_id={weights}files/\n".encode()
    put(access, DIGESTS[2], **{"serving.properties": settings})
    lock(root, "llm", DIGESTS[2])
    assert unused(root, access) == []
    (root / "model_configs/llm.lock.json").unlink()
    assert len(unused(root, access)) == 2


def make_stack(access: Access, name: str, digest: str, tags: dict[str, str]) -> None:
    """Makes a stack whose template names an artifact."""
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": f"artifacts/{digest}/"}}
    access.client("cloudformation").create_stack(
        StackName=name,
        TemplateBody=json.dumps({"Resources": {"Topic": topic}}),
        Tags=tags_of(tags),
    )


def test_stacks_keep_what_their_templates_name(root: Path, access: Access) -> None:
    put(access, DIGESTS[1])
    put(access, DIGESTS[2])
    make_stack(access, "ours", DIGESTS[1], LOCAL.tags)
    make_stack(access, "theirs", DIGESTS[2], {"team": "x"})
    assert [name for _, name in unused(root, access)] == [
        f"s3://{LOCAL.artifact_bucket}/artifacts/{DIGESTS[2]}/"
    ]


def test_outputs_of_jobs_and_unfinished_uploads(root: Path, access: Access) -> None:
    s3, bucket = access.client("s3"), LOCAL.artifact_bucket
    for job in ("done-1", "models/tiny/done-2"):
        s3.put_object(Bucket=bucket, Key=f"compile/{job}/output/model/engine", Body=b"e")
    s3.create_multipart_upload(Bucket=bucket, Key="artifacts/half")
    found = items(root, access)
    assert [(item.kind, item.name, item.size_bytes) for item in found] == [
        ("compile output", f"s3://{bucket}/compile/done-1/", 1),
        ("compile output", f"s3://{bucket}/compile/models/tiny/done-2/", 1),
        ("unfinished upload", f"s3://{bucket}/artifacts/half", None),
    ]
    assert [delete(item, LOCAL, access) for item in found] == [[], [], []]
    assert unused(root, access) == []
    assert keys(access) == []


def image(access: Access, tag: str) -> None:
    put_image(access.client("ecr"), REPOSITORY, tag)


def test_images_of_the_sources_of_a_ref_stay(root: Path, access: Access) -> None:
    before = image_digest(root, "lmi")
    git(root, "tag", "v1")
    (root / "containers/lmi/Dockerfile").write_text("FROM other\n")
    commit(root)
    now = image_digest(root, "lmi")
    for tag in (
        f"25.09-{before}",
        f"25.09-{now}",
        f"25.09-{now}-compiler",
        "25.09-0123456789abcdef",
    ):
        image(access, tag)
    access.client("ecr").create_repository(repositoryName="slipway/other-project/lmi")
    gone = ("image", f"{REPOSITORY}:25.09-0123456789abcdef")
    assert unused(root, access) == [gone]
    older = ("image", f"{REPOSITORY}:25.09-{before}")
    assert unused(root, access, "main") == sorted([older, gone])
    (found,) = items(root, access)
    assert delete(found, LOCAL, access) == []
    assert unused(root, access) == []


def test_a_deletion_takes_the_manifest_first(
    root: Path, access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipway.pruning._MOST_OBJECTS", 5)
    put(access, DIGESTS[1], **{f"{n}.bin": b"x" for n in range(12)})
    kept = put(access, DIGESTS[2])
    lock(root, "kept", DIGESTS[2])
    (found,) = items(root, access)
    assert found.size_bytes == 14
    assert found.parts[0].endswith("/manifest.json")
    assert delete(found, LOCAL, access) == []
    assert [f"s3://{LOCAL.artifact_bucket}/{key}".startswith(kept) for key in keys(access)] == [
        True,
        True,
    ]


def test_the_printed_rights_are_what_it_needs(root: Path, access: Access, url: str) -> None:
    address = put(access, DIGESTS[1], **{"serving.properties": b"option.model_id=s3://a/b/\n"})
    model(access, "live", ModelDataUrl=f"{address}files/")
    put(access, DIGESTS[2], "tiny")
    make_stack(access, "ours", DIGESTS[3], LOCAL.tags)
    access.client("s3").put_object(
        Bucket=LOCAL.artifact_bucket, Key="compile/done-1/output/engine", Body=b"e"
    )
    access.client("s3").create_multipart_upload(Bucket=LOCAL.artifact_bucket, Key="artifacts/half")
    image(access, "25.09-0123456789abcdef")
    used = access_to(url)
    recorded = RecordedCalls(used, f"{LOCAL.region}:{LOCAL.account}")
    found = items(root, used)
    kinds = ["artifact", "compile output", "image", "unfinished upload"]
    assert [each.kind for each in found] == kinds
    assert [delete(each, LOCAL, used) for each in found] == [[]] * 4
    assert unused(root, access) == []
    policy = prune_policy(LOCAL)
    assert recorded.denied_by(policy) == set()
    # No training job was running.
    assert recorded.unused_of(policy) == {("ReadReferences", "sagemaker:DescribeTrainingJob")}


@pytest.fixture
def run(
    root: Path, access: Access, monkeypatch: pytest.MonkeyPatch, slipway_command: Callable[..., Any]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: access)
    monkeypatch.setattr("slipway.pruning.LEAST_AGE", -LATER)
    return lambda *arguments: slipway_command("prune", *arguments)


def test_the_command_lists_and_deletes_with_yes(
    run: Callable[..., tuple[int, str, str]], access: Access
) -> None:
    address = put(access, DIGESTS[1])
    code, output, errors = run()
    assert (code, errors) == (0, "")
    assert output.startswith(f"artifact: {address}, 9 bytes, 20")
    assert "1 unused, 9 bytes. Locks counted: the working tree; refs: HEAD, refs/heads/main." in (
        output
    )
    assert "run `git fetch --all` first" in output
    assert output.endswith("Nothing was deleted: `--yes` deletes what is listed.\n")
    assert len(keys(access)) == 2
    code, output, _ = run("--json", "--ref", "main")
    document = json.loads(output)
    assert (document["deleted"], document["size_bytes"], document["refs"]) == (False, 9, ["main"])
    assert [each["name"] for each in document["unused"]] == [address]
    assert run("--yes")[0] == 0
    assert keys(access) == []
    assert run()[1].startswith("0 unused, 0 bytes.")


def test_a_wrong_ref_and_a_missing_bucket(
    run: Callable[..., tuple[int, str, str]], access: Access
) -> None:
    code, output, errors = run("--yes", "--ref", "nowhere")
    assert (code, output) == (1, "")
    assert "git has no commit nowhere" in errors
    access.client("s3").delete_bucket(Bucket=LOCAL.artifact_bucket)
    assert run()[1].startswith("0 unused")
    image(access, "25.09-0123456789abcdef")
    assert run()[1].startswith(f"image: {REPOSITORY}:25.09-0123456789abcdef")


def test_a_deletion_that_the_account_refuses_is_told(
    run: Callable[..., tuple[int, str, str]], access: Access
) -> None:
    address = put(access, DIGESTS[1])
    answer = {"Errors": [{"Key": "artifacts/x", "Message": "Access Denied"}]}
    access._session.events.register(
        "after-call.s3.DeleteObjects", lambda parsed, **_: parsed.update(answer)
    )
    code, _, errors = run("--yes")
    assert code == 1
    assert f"{address} could not be deleted as a whole: artifacts/x: Access Denied" in errors
    put(access, DIGESTS[1])
    code, output, _ = run("--yes", "--json")
    assert code == 1
    assert [each["code"] for each in json.loads(output)["problems"]] == ["SW515"]
