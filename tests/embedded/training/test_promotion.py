"""Promoting a model that a training job compiled: to an environment, and to a second region.

An engine is never built twice with the same bytes. What serves elsewhere is therefore a copy.
"""

import contextlib
import hashlib
import json
from typing import Any

import pytest

from slipway.access import Access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.planning.artifact_place import artifact_place
from slipway.planning.plan import ImagePlan
from slipway.project import Project
from slipway.publishing import images
from slipway.publishing.promotion import promote
from slipway.publishing.publish import Published
from slipway.rights.commands import promotion_policy
from tests.embedded.training.publishing import ENVIRONMENTS, MANIFEST, STAGING, Publishing, Said
from tests.support.accounts import access_to
from tests.support.projects import config_text
from tests.support.recorded_calls import RecordedCalls

pytestmark = pytest.mark.timeout(120)

PRODUCTION = STAGING.model_copy(update={"name": "production"})
SECOND = Environment(name="second", account="123456789012", region="eu-west-1")
SERVING = config_text("own").partition("serving:\n")[2].partition("\n\n")[0]
OWN = """\
  container: custom
  image_uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1"""
OWN_THERE = """
environments:
  second:
    serving:
      image_uri: 123456789012.dkr.ecr.eu-west-1.amazonaws.com/search:1
"""


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class TwoRegions:
    """A tested engine and its image in one region, and what a foundation leaves in another."""

    def __init__(self, publishing: Publishing) -> None:
        self.publishing = publishing
        root = publishing.root
        second = 'second:\n  account: "123456789012"\n  region: eu-west-1\n'
        (root / "environments.yaml").write_text(ENVIRONMENTS + second, "utf-8")
        self.access = access_to(publishing.account.url, SECOND.region)
        self.ecr = {
            STAGING.name: publishing.account.client("ecr"),
            SECOND.name: self.access.client("ecr"),
        }
        s3 = self.access.client("s3")
        with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(
                Bucket=SECOND.artifact_bucket,
                CreateBucketConfiguration={"LocationConstraint": SECOND.region},
            )
        publishing.build_image()
        # Other layers in each test, and a configuration: the account is the module's.
        own = str(root).encode()
        self.layers = [b'{"os": "linux"}' + own, b"a" * 5_000 + own, b"b" * 20_000 + own]
        self.manifest = self._push(self.image(STAGING), self.ecr["staging"])
        self.make_repository()

    def make_repository(self) -> None:
        ecr, name = self.ecr["second"], self.image(SECOND).repository
        with contextlib.suppress(ecr.exceptions.RepositoryNotFoundException):
            ecr.delete_repository(repositoryName=name, force=True)
        ecr.create_repository(repositoryName=name, imageTagMutability="IMMUTABLE")

    def image(self, environment: Environment) -> ImagePlan:
        project = Project(self.publishing.root)
        return project.plan("tiny", environment, allow_unpublished=True).image

    def _push(self, image: ImagePlan, ecr: Any) -> str:
        name = {"repositoryName": image.repository}
        for layer in self.layers:
            upload = ecr.initiate_layer_upload(**name)["uploadId"]
            ecr.upload_layer_part(
                **name, uploadId=upload, partFirstByte=0, partLastByte=len(layer) - 1,
                layerPartBlob=layer,
            )  # fmt: skip
            ecr.complete_layer_upload(**name, uploadId=upload, layerDigests=[sha256(layer)])
        first, *rest = [{"digest": sha256(each), "size": len(each)} for each in self.layers]
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": first, "layers": rest}
        )
        self.put(ecr, image, manifest)
        return manifest

    def put(self, ecr: Any, image: ImagePlan, manifest: str) -> None:
        self.forget(ecr, image)
        ecr.put_image(
            repositoryName=image.repository, imageManifest=manifest, imageTag=image.tag,
            imageDigest=sha256(manifest.encode()),
        )  # fmt: skip

    def forget(self, ecr: Any, image: ImagePlan) -> None:
        ids = [{"imageTag": image.tag}]
        ecr.batch_delete_image(repositoryName=image.repository, imageIds=ids)

    def found(self) -> list[tuple[str, str]]:
        image = self.image(SECOND)
        answer = self.ecr["second"].batch_get_image(
            repositoryName=image.repository, imageIds=[{"imageTag": image.tag}]
        )
        return [(each["imageId"]["imageDigest"], each["imageManifest"])
                for each in answer["images"]]  # fmt: skip

    def run(
        self, access: Access | None = None, source_access: Access | None = None
    ) -> tuple[Published, Said]:
        said = Said()
        published = promote(
            Project(self.publishing.root), "tiny", SECOND, access or self.access, said,
            source=STAGING, source_access=source_access or self.publishing.access,
            within_s3=True, with_image=True,
        )  # fmt: skip
        return published, said

    def refusal(self) -> tuple[str, str]:
        with pytest.raises(UserError) as caught:
            self.run()
        (problem,) = caught.value.problems
        # Nothing says that the target has what it has not.
        environments = Project(self.publishing.root).lock("tiny").environments or {}
        assert "second" not in environments
        return problem.message, problem.remedy


@pytest.fixture
def regions(publishing: Publishing) -> TwoRegions:
    found = TwoRegions(publishing)
    publishing.run(STAGING)
    return found


def test_the_second_region_has_the_engine_and_the_image_of_the_first(regions):
    publishing, size_bytes = regions.publishing, sum(map(len, regions.layers))
    tested = publishing.locked(STAGING)
    promoted, said = regions.run()
    assert publishing.locked(SECOND) == tested
    bucket = regions.access.client("s3")
    first = publishing.objects(STAGING, "artifacts/")
    assert {item["Key"] for item in first} == {
        item["Key"]
        for item in bucket.list_objects_v2(Bucket=SECOND.artifact_bucket)["Contents"]
        if item["Key"].startswith("artifacts/")
    }
    for item in first:
        copied = bucket.get_object(Bucket=SECOND.artifact_bucket, Key=item["Key"])["Body"].read()
        assert copied == publishing.body(STAGING, item["Key"])
    assert promoted.image == images.PromotedImage(
        regions.image(SECOND).uri, sha256(regions.manifest.encode()), size_bytes
    )
    assert regions.found() == [(promoted.image.digest, regions.manifest)]
    assert said.events[0] == ("copying", size_bytes)
    # Each layer is there, and has the bytes of its digest.
    ecr, name = regions.ecr["second"], regions.image(SECOND).repository
    for layer in regions.layers:
        answer = ecr.get_download_url_for_layer(repositoryName=name, layerDigest=sha256(layer))
        assert answer["layerDigest"] == sha256(layer)
    again, _ = regions.run()
    assert (again.image.copied_bytes, again.uploaded_bytes, again.lock_changed) == (0, 0, False)
    assert len(publishing.jobs()) == 1


def test_a_damaged_layer_never_arrives_and_the_next_run_goes_on(regions, monkeypatch):
    s3, last = regions.publishing.account.s3, sha256(regions.layers[-1])
    bucket = "ecr-layers-us-east-1"
    s3.put_object(Bucket=bucket, Key=last, Body=b"damaged")
    message, remedy = regions.refusal()
    assert message.startswith(f"the image {regions.image(STAGING).uri} could not be copied: An ")
    assert "(InvalidLayerException)" in message
    assert f"is {sha256(b'damaged')}." in message
    assert remedy.startswith("Run the command again: layers that arrived are not copied again.")
    assert "`slipway iam tiny --env second --from staging --image`" in remedy
    assert regions.found() == []
    s3.delete_object(Bucket=bucket, Key=last)
    assert f"404 for the layer {last}" in regions.refusal()[0]
    s3.put_object(Bucket=bucket, Key=last, Body=regions.layers[-1])
    promoted, _ = regions.run()
    assert promoted.image.copied_bytes == len(regions.layers[-1])
    assert regions.found() == [(promoted.image.digest, regions.manifest)]


def test_a_tag_keeps_its_image(regions):
    target = regions.image(SECOND)
    own = regions.manifest.replace('"schemaVersion": 2', '"schemaVersion":  2')
    regions.run()
    regions.put(regions.ecr["second"], target, own)
    (regions.publishing.root / "model_configs/tiny.lock.json").write_text("{}")
    regions.publishing.run(STAGING)
    assert regions.refusal() == (
        f"{target.uri} is not the tested image: it is {sha256(own.encode())}, and `staging` has "
        f"{sha256(regions.manifest.encode())}",
        "A tag keeps its image. Where no endpoint runs it, delete it with `aws ecr "
        f"batch-delete-image --region eu-west-1 --repository-name {target.repository} "
        f"--image-ids imageTag={target.tag}`, then run the command again.",
    )
    assert regions.found() == [(sha256(own.encode()), own)]
    regions.forget(regions.ecr["second"], target)
    promoted, _ = regions.run()
    assert regions.found() == [(promoted.image.digest, regions.manifest)]


def test_an_image_or_a_repository_that_is_missing(regions):
    target, tested = regions.image(SECOND), regions.image(STAGING)
    assert target.repository == "slipway/tensorrt"
    regions.ecr["second"].delete_repository(repositoryName=target.repository, force=True)
    assert regions.refusal() == (
        "`second` has no repository slipway/tensorrt",
        "Make it with `aws ecr create-repository --image-tag-mutability IMMUTABLE --region "
        "eu-west-1 --repository-name slipway/tensorrt`, and deploy its stack later with "
        "`--import-existing-resources`.",
    )
    regions.forget(regions.ecr["staging"], tested)
    assert regions.refusal() == (
        f"`staging` has no image {tested.uri}",
        "Run `cdk deploy image-tensorrt -c env=staging`, test, then promote.",
    )


def test_the_policy_is_what_the_copy_needs(regions):
    account = regions.publishing.account
    access, source = (access_to(account.url, each.region) for each in (SECOND, STAGING))
    written = RecordedCalls(access, f"{SECOND.region}:{SECOND.account}")
    read = RecordedCalls(source, f"{STAGING.region}:{STAGING.account}")
    regions.run(access, source)
    config = Project(regions.publishing.root).config("tiny", "second").config
    policy = promotion_policy(
        SECOND, artifact_place(config, SECOND), source=STAGING,
        source_place=artifact_place(config, STAGING), has_recipes=True,
        images=[(regions.image(SECOND), regions.image(STAGING))],
    )  # fmt: skip

    def of_ecr(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
        return {each for each in found if "ecr:" in "".join(each)}

    assert of_ecr(written.made), of_ecr(read.made)
    assert of_ecr(written.denied_by(policy) | read.denied_by(policy)) == set()
    assert of_ecr(written.unused_of(policy) & read.unused_of(policy)) == set()


def test_the_command_copies_the_image(regions, slipway_command, monkeypatch):
    monkeypatch.chdir(regions.publishing.root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: regions.access)
    promotion = ("publish", "tiny", "--env", "second", "--image")
    code, _, errors = slipway_command(*promotion)
    assert code == 1
    assert "`--image` needs `--from`" in errors
    code, output, errors = slipway_command(*promotion, "--from", "staging")
    assert (code, errors) == (0, "")
    image, digest = regions.image(SECOND), sha256(regions.manifest.encode())
    assert f"Image {image.uri}, {digest}: 25." in output
    code, output, _ = slipway_command(*promotion, "--from", "staging", "--json")
    told = json.loads(output)
    assert (code, told["image"]) == (0, {"uri": image.uri, "digest": digest, "copied_bytes": 0})
    code, output, _ = slipway_command(
        "iam", "tiny", "--env", "second", "--from", "staging", "--image"
    )
    named = {each["Sid"]: each["Resource"] for each in json.loads(output)["Statement"]}
    place = f"123456789012:repository/{image.repository}"
    assert named["WriteImage"] == [f"arn:aws:ecr:eu-west-1:{place}"]
    assert named["ReadSourceImage"] == [f"arn:aws:ecr:us-east-1:{place}"]


@pytest.mark.parametrize("source", ["staging", "local"])
def test_there_is_nothing_to_copy_of_an_image_that_slipway_does_not_build(regions, source):
    name, whose = ("tiny", "local") if source == "local" else ("own", "own")
    text = config_text("own").replace(SERVING, OWN) + OWN_THERE
    (regions.publishing.root / "model_configs/own.yaml").write_text(text, "utf-8")
    project = Project(regions.publishing.root)
    with pytest.raises(UserError) as caught:
        images.promote_image(
            project, name, SECOND, regions.access, Said(),
            source=project.environment(source), source_access=regions.publishing.access,
        )  # fmt: skip
    (problem,) = caught.value.problems
    assert (problem.message, problem.remedy) == (
        f"`--image` has no effect: Slipway builds no image for `{whose}`",
        "Leave `--image` out.",
    )


def test_ecr_refuses_an_image_that_it_does_not_have_whole(regions):
    """The embedded AWS's own refusals, in the words of the API's errors."""
    ecr, image = regions.ecr["second"], regions.image(SECOND)
    put = {"repositoryName": image.repository, "imageManifest": regions.manifest}
    with pytest.raises(ecr.exceptions.ImageDigestDoesNotMatchException):
        ecr.put_image(**put, imageTag="a", imageDigest=sha256(b""))
    with pytest.raises(ecr.exceptions.LayersNotFoundException):
        ecr.put_image(**put, imageTag="a", imageDigest=sha256(regions.manifest.encode()))
    with pytest.raises(ecr.exceptions.LayersNotFoundException):
        ecr.get_download_url_for_layer(
            repositoryName=image.repository, layerDigest=sha256(regions.layers[0])
        )


@pytest.fixture
def promoting(publishing: Publishing) -> Publishing:
    publishing.account.s3.create_bucket(Bucket=PRODUCTION.artifact_bucket)
    publishing.put_parameters("production")
    staging = ENVIRONMENTS.partition("staging:")[2]
    text = f"{ENVIRONMENTS}production:{staging}"
    (publishing.root / "environments.yaml").write_text(text, "utf-8")
    publishing.build_image()
    return publishing


def promoted_to_production(publishing: Publishing) -> Published:
    return promote(
        Project(publishing.root),
        "tiny",
        PRODUCTION,
        publishing.access,
        Said(),
        source=STAGING,
        source_access=publishing.access,
        within_s3=True,
    )


def test_nothing_is_compiled_again_by_the_promotion_or_by_a_later_publish(promoting):
    tested = promoting.run(STAGING)
    promoted = promoted_to_production(promoting)
    assert (promoted.digest, promoted.target, promoted.source) == (
        tested.digest, "sm75", tested.source,
    )  # fmt: skip
    assert promoting.locked(PRODUCTION) == promoting.locked(STAGING)
    files = promoting.verify(promoted.digest, PRODUCTION)
    assert files == promoting.verify(tested.digest, STAGING)
    promoting.verify(promoted.weights_digest, PRODUCTION)
    said = Said()
    again = promoting.run(PRODUCTION, said)
    assert (again.digest, again.uploaded_bytes, again.lock_changed) == (tested.digest, 0, False)
    assert f"The same was compiled before, by {tested.source}." in said.notes
    assert len(promoting.jobs()) == 1


@pytest.mark.size("all")
def test_what_was_built_from_other_inputs_since_is_not_taken_for_it(promoting):
    """A newer record in the source would name an artifact that the target does not have."""
    promoting.run(STAGING)
    for item in promoting.objects(STAGING, "recipes/"):
        record = json.loads(promoting.body(STAGING, item["Key"]))
        record["made"]["digest"] = "0" * 64
        promoting.account.s3.put_object(
            Bucket=STAGING.artifact_bucket, Key=item["Key"], Body=json.dumps(record)
        )
    before = promoting.objects(PRODUCTION, "recipes/")
    promoted = promoted_to_production(promoting)
    promoting.verify(promoted.digest, PRODUCTION)
    assert promoting.objects(PRODUCTION, "recipes/") == before
