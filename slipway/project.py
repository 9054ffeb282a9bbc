"""A project on disk: its configs, locks and environments, brought together into plans.

`resolve`, which is pure, is called here. app.py and every command share this module, so that
`slipway plan` shows what `cdk synth` renders.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.codes.code import Code
from slipway.config.environment_file import load_defaults, place_in_environment
from slipway.config.environments import Environment
from slipway.config.load import Default, InvalidConfigError, LoadedConfig
from slipway.config.sections.base import UnknownValueError
from slipway.directories import find_escapes, find_in_directory
from slipway.errors import Kind, Problem, UserError
from slipway.image_sources import IMAGE_SOURCES, image_digest
from slipway.planning.adapters import compare_with_base, more_adapters_than_slots
from slipway.planning.artifacts import has_source
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment
from slipway.planning.directory import DirectoryFindings
from slipway.planning.families import FAMILIES, deployment_of, known_deployment
from slipway.planning.lock import Lock
from slipway.planning.plan import DeploymentPlan, GuestPlan, ImageBase, PlanWarning
from slipway.planning.resolve import known_problems, resolve
from slipway.planning.sharing import (
    compare_with_host,
    guest_plan,
    invalid_guest,
    invalid_host,
    unknown_host,
)
from slipway.policies.judge import judge
from slipway.policies.plan import Policy
from slipway.project_files import ProjectFiles

# The folder of what programs make; git ignores it.
_MADE_LATER = "build/"


@dataclass(frozen=True)
class Checked:
    """What `slipway validate` finds in one model, over all environments, each once.

    `deploying` has the names of the environments that deploy the model.
    """

    problems: Sequence[Problem]
    warnings: Sequence[PlanWarning]
    deploying: Sequence[str]


@dataclass(frozen=True)
class Project(ProjectFiles):
    """One project, in the folder with environments.yaml and model_configs/.

    Its plans must meet `policies`, beside those of environments.yaml. With None, not even these
    run.
    """

    policies: Sequence[Policy] | None = ()

    @functools.cached_property
    def unjudged(self) -> "Project":
        """Returns the project for plans that are only looked at: no policy runs."""
        return replace(self, policies=None)

    def deployment(self, name: str, environment: Environment) -> Deployment:
        loaded = self.config(name, environment.name)
        return deployment_of(loaded.config, environment, loaded.variant)

    def image_bases(self, family: str, environment: Environment) -> list[ImageBase]:
        """Returns the images that a container of Slipway is built on, for the project's configs.

        Every config counts, whatever was selected, so that a selection does not change which images
        are built. An invalid config does not count.
        """
        entry, found = FAMILIES[family], set[tuple[str, str]]()
        if entry.image_bases is None:
            raise ValueError(f"Slipway builds no image for the container {family}")
        for name, text in self.texts.items():
            if entry.marks_image is None or entry.marks_image not in text:
                continue
            try:
                names = self.published_names(name, environment)
                deployments = [self.deployment(each, environment) for each in names]
            except UserError:
                continue  # its own stack carries the report
            found |= {
                each.aws_image_name
                for each in deployments
                if each.image_family == family and each.aws_image_name is not None
            }
        return list(entry.image_bases(environment, sorted(found)))

    @functools.cached_property
    def image_digests(self) -> Mapping[str, str]:
        return {family: self.image_digest(family) for family in IMAGE_SOURCES}

    @functools.cached_property
    def image_digest(self) -> Callable[[str], str]:
        """Returns the function that fingerprints the sources of a family's image, once."""
        return functools.cache(functools.partial(image_digest, self.root))

    def findings(self, deployment: Deployment) -> DirectoryFindings:
        """Returns what the family finds in the directory that is published as it is.

        Without the directory it finds nothing, because publishing reports that, and a build may
        make the directory later.
        """
        return find_in_directory(self.root, deployment)

    def deploying_environments(self, name: str) -> list[Environment]:
        """Returns the environments that deploy a sample or release; raises `UserError`."""
        environments = [self.environment(each) for each in self.environment_names]
        return [each for each in environments if has_source(self.deployment(name, each))]

    def check(self, name: str, environments: Sequence[Environment]) -> Checked:
        """Checks one model in each environment that deploys it, or in the first if none does.

        A file is read once for all environments that it has no section for, and that have no
        defaults of their own. The lock is read once.
        """
        problems: dict[Problem, None] = {}
        warnings: dict[PlanWarning, None] = {}
        deploying: list[str] = []
        loaded: dict[str, LoadedConfig] = {}
        idle: list[tuple[Deployment, LoadedConfig]] = []
        read, lock = functools.cache(self._read), functools.cache(self.lock)
        for environment in environments:
            known = next(iter(loaded.values()), None)
            section = environment.name
            if known is not None and section not in known.config.environments:
                # An adapter's base may have sections of environments.
                has_own = known.config.adapter_of is not None
                has_own |= load_defaults(section, self.root) != load_defaults("", self.root)
                section = section if has_own else ""
            try:
                if section not in loaded:
                    loaded[section] = self._as_seen(environment.name, read(name))
                there = loaded[section]
                deployment = deployment_of(there.config, environment)
                if not has_source(deployment):
                    idle.append((deployment, there))
                    continue
                deploying.append(environment.name)
                plan = self._plan(there, deployment, lock(name), True)
                warnings.update(dict.fromkeys(plan.warnings))
            except InvalidConfigError as error:
                deploying.append(environment.name)
                found = self._joined(error, environment)
                problems.update(dict.fromkeys(found.problems))
            except UserError as error:
                problems.update(dict.fromkeys(error.problems))
        for deployment, there in [] if deploying else idle[:1]:
            try:
                plan = self._plan(there, deployment, lock(name), True)
                warnings.update(dict.fromkeys(plan.warnings))
            except UserError as error:
                problems.update(dict.fromkeys(error.problems))
        for there in loaded.values():
            problems.update(dict.fromkeys(self._wrong_paths(there)))
        return Checked(list(problems), list(warnings), deploying)

    def _wrong_paths(self, loaded: LoadedConfig) -> list[Problem]:
        """Returns the problem of each folder of files that is not there, or not in the project.

        Programs make a release, and files below `build/`, so that those may come later.
        """
        artifacts = loaded.config.artifacts
        of_variants = [each for own in loaded.variants.values() for each in self._wrong_paths(own)]
        found = find_escapes(self.root, loaded.config)
        for name in ("sample", "weights"):
            path = getattr(getattr(artifacts, name), "path", None)
            if path is None or path.startswith(_MADE_LATER):
                continue
            if not (self.root / path).exists():
                found.append(
                    Problem(
                        Code.PATH_MISSING,
                        Kind.STATE,
                        f"there is no {path} in the project",
                        "Correct the path, or copy the files there.",
                        ("artifacts", name, "path"),
                    )
                )
        return [*loaded.locate(found), *of_variants]

    def plan(
        self, name: str, environment: Environment, *, allow_unpublished: bool = False
    ) -> DeploymentPlan:
        """Makes one model's plan; raises `UserError` with every problem that prevents it."""
        try:
            loaded = self.config(name, environment.name)
        except InvalidConfigError as error:
            raise self._joined(error, environment) from None
        lock = self.lock(Path(loaded.document.path).stem)
        deployment = deployment_of(loaded.config, environment, loaded.variant)
        return self._plan(loaded, deployment, lock, allow_unpublished)

    def _joined(self, error: InvalidConfigError, environment: Environment) -> UserError:
        """Returns one report of a config's invalid values and of what its valid ones break."""
        known = known_deployment(error.known, environment)
        found = known_problems(known)
        with contextlib.suppress(UnknownValueError):  # which directory it is
            found += self.findings(known).problems
        return error.joined_by(found)

    def _plan(
        self, loaded: LoadedConfig, deployment: Deployment, lock: Lock, allow_unpublished: bool, /
    ) -> DeploymentPlan:
        # Outside the `try`: what is wrong there has no place in this config.
        family = deployment.image_family
        image_digests = {} if family is None else {family: self.image_digest(family)}
        findings = self.findings(deployment)
        guests, shared = self._guests(deployment)
        refused = [*findings.problems, *shared, *self.host_problems(deployment, lock)]
        owns, of_variants = dict[str, DeploymentPlan | None](), list[Problem]()
        for name, own in loaded.variants.items():
            alone = deployment_of(own.config, deployment.environment, name)
            try:
                owns[name] = self._plan(own, alone, lock, allow_unpublished)
            except UserError as error:
                owns[name] = None
                of_variants += error.problems
        try:
            plan = resolve(
                deployment,
                lock,
                image_digests,
                guests=guests,
                owns=owns,
                allow_unpublished=allow_unpublished,
            )
        except UserError as error:
            refused += error.problems
        if refused or of_variants:
            # What a variant shares with the file is wrong once.
            raise UserError(dict.fromkeys([*loaded.locate(refused), *of_variants]))
        plan = replace(
            plan,
            warnings=(*plan.warnings, *findings.warnings, *self._adapter_warnings(deployment)),
            defaults=(*loaded.defaults(), *self._default_network(deployment)),
        )
        refused = [] if self.policies is None else list(judge(plan, self.policies, self.root))
        if refused:
            raise UserError(loaded.locate(refused))
        return plan

    def _default_network(self, deployment: Deployment) -> list[Default]:
        environment = deployment.environment
        if environment.network is None or deployment.config.endpoint.vpc is not None:
            return []
        _, place = place_in_environment(environment.name, ("network",), self.root)
        return [Default("endpoint.vpc", "the network of the environment", place)]

    def _guests(self, deployment: Deployment) -> tuple[list[GuestPlan], list[Problem]]:
        """Returns the models whose copies run on a model's endpoint; of unreadable ones, why."""
        config, environment = deployment.config, deployment.environment
        guests, problems = list[GuestPlan](), list[Problem]()
        if config.endpoint.mode != SCALE_TO_ZERO or config.endpoint.host is not None:
            return guests, problems
        for name in self.naming(config.name):
            try:
                other = self.deployment(name, environment)
                is_guest = other.config.adapter_of is None
                if is_guest and other.config.endpoint.host == config.name and has_source(other):
                    plan = self.plan(name, environment, allow_unpublished=True)
                    guests.append(guest_plan(plan))
            except UserError:
                if self.base_named_in(name) is None:
                    problems.append(invalid_guest(config.name, name))
        return guests, problems

    def host_problems(self, deployment: Deployment, lock: Lock) -> list[Problem]:
        """Returns the reasons for which a model cannot be a guest of the host that it names."""
        host = deployment.config.endpoint.host
        if host is None:
            return []
        unknown = unknown_host(host, deployment.config.name, self.files)
        if unknown is not None:
            return [unknown]
        try:
            there = self.deployment(host, deployment.environment)
            if deployment.config.adapter_of is not None:
                return list(compare_with_base(deployment, there, lock))
            return list(compare_with_host(deployment, there))
        except UserError:
            return [invalid_host(host)]

    def _adapter_warnings(self, deployment: Deployment) -> list[PlanWarning]:
        """Returns the warning of a base with more adapters than a batch has room for."""
        base, environment = deployment.config.adapter_of, deployment.environment
        if base is None:
            return []
        named = [name for name in self.naming(base) if self.base_named_in(name) == base]
        return list(more_adapters_than_slots(self.deployment(base, environment), named))
