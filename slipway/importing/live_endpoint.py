"""An endpoint that is imported: what AWS tells beside its container, and what comes around it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.access import Access, account_errors, open_shell_access
from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.deployed.described import Described, Package
from slipway.deployed.packages import read_checkpoint_in_s3
from slipway.deployed.reader import read_endpoint
from slipway.errors import UserError
from slipway.importing.call import Call
from slipway.importing.draft import Draft, FieldName, Guess, ImportResult, KnownFacts
from slipway.importing.endpoint.endpoints import Hosted, hosted
from slipway.importing.weights import WeightsPlace

# The prefix of a model whose artifacts no other model's role can read.
_ISOLATED = re.compile(r"s3://[^/]+/models/[^/]+/artifacts/")
# Weights of two bytes each, as most checkpoints have them.
_BYTES_OF_A_WEIGHT = 2


@dataclass(frozen=True)
class LiveEndpoint:
    described: Described
    hosted: Hosted
    access: Access
    given: KnownFacts

    @property
    def call(self) -> Call:
        return self.hosted.call

    @property
    def origin(self) -> str:
        described = self.described
        return f"{described.origin} of account {described.account} in {described.region}"

    def package(self) -> Package:
        """Returns the small files of the model data; raises `UserError` if they cannot be read."""
        address = self.call.model_data or ""
        found = self.described.packages.get(address, Package())
        if found.unread:
            raise UserError.of(
                Code.IMPORT_NO_PACKAGE,
                f"the model data {address} of {self.described.origin} may have the settings of its "
                f"server, and {found.unread}",
                "Allow `s3:GetObject` and `s3:ListBucket` on it. Or unpack it into a folder, and "
                f"run `slipway import {self.given.name} --properties FOLDER`.",
            )
        return found

    def placed(self, place: WeightsPlace) -> WeightsPlace:
        if place.repository is not None:
            return place
        if place.section is None and self.call.model_data is not None:
            return replace(place, section={"source": "path", "path": self.folder})
        if place.section is None:
            return replace(place, missing=f"{self.call.origin} has no model data")
        if place.section["source"] != "s3":
            return place
        uri = str(place.section["uri"])
        stored = read_checkpoint_in_s3(self.access.client("s3"), uri)
        if stored.unread:
            # The report is made of these lists after all else.
            self.hosted.found.change("weights", uri, f"not looked at, because {stored.unread}")
        return replace(place, facts=stored.facts, size_gb=stored.size_gb)

    def roughly(
        self, given: KnownFacts, place: WeightsPlace
    ) -> tuple[KnownFacts, Mapping[FieldName, Guess]]:
        """Returns facts of the network that nothing tells, as far as a guess is of use."""
        guesses: dict[FieldName, Guess] = {}
        if given.family is None:
            given = replace(given, family="other")
            guesses["model", "family"] = Guess(
                "nothing tells it. With `other`, checks that need the architecture are off."
            )
        if given.parameters is None and place.size_gb is not None:
            count = round(place.size_gb * 1e9 / _BYTES_OF_A_WEIGHT)
            given = replace(given, parameters=count)
            guesses["model", "parameters"] = Guess(
                f"the model data has {place.size_gb:g} GB, and two bytes for each weight are usual."
            )
        if (given.weights or {}).get("path") == self.folder:
            guesses["artifacts", "weights", "path"] = Guess(
                f"a folder for the files, which lie in {self.call.model_data}."
            )
        return given, guesses

    def made(self, made: ImportResult, environments: Sequence[Environment]) -> ImportResult:
        draft = self.hosted.complete(made.draft)
        if "artifacts" in draft.content and self._is_sample(environments):
            draft = self._as_sample(draft)
        if self.described.environment and _ISOLATED.match(self.call.model_data or ""):
            artifacts = {**draft.content.get("artifacts", {}), "isolated": True}
            draft = replace(draft, content={**draft.content, "artifacts": artifacts})
        return replace(
            made,
            draft=draft,
            origin=self.origin,
            first=self._first(draft),
            then=self._then(environments),
        )

    @property
    def folder(self) -> str:
        """Returns the folder of the project for files that lie in S3."""
        return f"build/{self.given.name}"

    def _is_sample(self, environments: Sequence[Environment]) -> bool:
        mine = self.described.environment
        return any(each.name == mine and each.artifacts == "sample" for each in environments)

    def _as_sample(self, draft: Draft) -> Draft:
        guesses = {path: each for path, each in draft.guesses.items() if path[0] != "artifacts"}
        guesses["artifacts", "sample", "path"] = Guess(
            f"a folder for the files, which lie in {self.call.model_data}."
        )
        content = {**draft.content, "artifacts": {"sample": {"path": self.folder}}}
        return replace(draft, content=content, guesses=guesses)

    def _first(self, draft: Draft) -> tuple[str, ...]:
        """Returns how the files come into the project, where the config names a folder."""
        folders = [
            section.get("path")
            for section in draft.content.get("artifacts", {}).values()
            if isinstance(section, dict)
        ]
        if self.folder not in (*folders, draft.content["serving"].get("repository")):
            return ()
        return copy_steps(self.call, self.folder)

    def _then(self, environments: Sequence[Environment]) -> tuple[str, ...]:
        old, name = self.described.name, self.given.name
        place = (self.described.account, self.described.region)
        for each in environments:
            if each.stack_name(name) != old or (each.account, each.region) != place:
                continue
            if self.described.environment == each.name:
                return (
                    f"{old} is this model's own endpoint. `cdk diff {name} -c "
                    f"env={each.name}` shows what the file would change.",
                )
            return (
                f"`{each.name}` cannot deploy it while {old} is there, because the new "
                "endpoint has that name. Import it under another NAME.",
            )
        return (
            f"{old} goes on as it is, since an endpoint keeps its name. Send "
            f"{name}-ENVIRONMENT the same requests, and change the clients over. Then run `aws "
            f"sagemaker delete-endpoint --endpoint-name {old}`.",
        )


def copy_steps(call: Call, folder: str) -> tuple[str, ...]:
    data = call.model_data
    if data is None:
        return ()
    command = f"aws s3 cp --recursive {data} {folder}"
    if not data.endswith("/"):
        command = f"mkdir -p {folder} && aws s3 cp {data} - | tar xz -C {folder}"
    return (command,)


def read_live(name: str, region: str | None, given: KnownFacts) -> LiveEndpoint:
    """Reads an endpoint with the shell's credentials, and in its region if none is named.

    Raises `UserError` if it is not there, may not be read, or has a form that no config can say.
    """
    access, found_region = open_shell_access(region)
    with account_errors():
        described = read_endpoint(access.client, name, found_region)
    host = hosted(described, given.latency_milliseconds)
    call, endpoint = host.call, dict(host.call.endpoint)
    if given.instance is not None:
        host.found.change("instances", endpoint["instances"], "as `--instance` says now.")
        endpoint["instances"] = [given.instance]
    return LiveEndpoint(
        described,
        replace(host, call=replace(call, endpoint=endpoint)),
        access,
        replace(given, instance=given.instance or call.instance, endpoint=endpoint, tags=call.tags),
    )
