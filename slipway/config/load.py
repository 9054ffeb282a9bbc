"""Loads model configs and environments: every problem at once, each with its place."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from slipway.codes.code import Code
from slipway.config.adapters import adapter_problems, as_adapter, over_base
from slipway.config.document import Document, read_document
from slipway.config.environment_file import (
    laid_over_shared,
    misspelt_keys,
    names_in,
    read_environments,
)
from slipway.config.environment_rules import environment_problems
from slipway.config.environments import Environment, EnvironmentName, Shared
from slipway.config.messages import describe
from slipway.config.names import (
    CONFIG_DIRECTORY,
    ENVIRONMENTS_FILE,
    POLICIES_KEY,
    PROJECT_KEY,
    SHARED_KEYS,
)
from slipway.config.schema import ModelConfig
from slipway.config.secrets import secrets_in
from slipway.config.sections.policies import Policies
from slipway.config.sections.serving import PACKAGES
from slipway.config.valid_subset import Doubts, valid_subset
from slipway.config.variants import variant_documents
from slipway.errors import Kind, Location, Problem, UserError, did_you_mean, dotted, relative
from slipway.pins import other_pins

_Model = TypeVar("_Model", bound=BaseModel)

OVERLAYS = "environments"
# Of a model config; the first is preferred where Slipway writes one.
SUFFIXES = (".yaml", ".yml")


class Default(NamedTuple):
    """A value that a model takes from environments.yaml: field, value, and where it stands."""

    field: str
    value: Any
    place: Location


@dataclass(frozen=True)
class LoadedConfig:
    """A valid config and the document it came from, which knows every field's place.

    Args:
        variant: the variant with a model of its own that it is of; None for the file's own.
        variants: the configs of such variants, by name: each is of an endpoint of it alone.
    """

    config: ModelConfig
    document: Document
    variant: str | None = None
    variants: Mapping[str, "LoadedConfig"] = field(default_factory=dict)

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Returns problems of a later stage with their places, in the file's order."""
        return _in_file_order(self.document, problems)

    def defaults(self) -> Iterator[Default]:
        for path, place in self.document.positions.items():
            # An adapter takes further values from the file of its base.
            if place.path == ENVIRONMENTS_FILE:
                value: Any = self.document.content
                for part in path:
                    value = value[part]
                if not isinstance(value, dict):
                    yield Default(dotted(path), value, place)


@dataclass(frozen=True)
class ConfigFile:
    """A model config as it is written, before the section of an environment is laid over it.

    `problems` are those of every environment: of its text, secrets, a second file for the model.
    """

    path: Path
    document: Document
    problems: tuple[Problem, ...]


class InvalidConfigError(UserError):
    """Everything that is wrong with a config's form and values, and the part that is right.

    In `known`, a field without a valid value raises `UnknownValueError`.
    """

    def __init__(self, problems: Sequence[Problem], known: ModelConfig, document: Document) -> None:
        super().__init__(problems)
        self.known = known
        self._document = document

    def joined_by(self, problems: Sequence[Problem]) -> UserError:
        """Returns one report with problems that a later stage found in the valid part."""
        return UserError(_in_file_order(self._document, [*self.problems, *problems]))


def config_files(root: Path) -> dict[str, Path]:
    """Returns the model configs of a project by name (file stem), in order of name.

    Hidden files are ignored, because editors make them. Of two files with one name the first is
    returned, and `load_config` refuses it.
    """
    folder = root / CONFIG_DIRECTORY
    # In reverse order, so that `.yaml` wins.
    files = sorted((path for end in SUFFIXES for path in folder.glob(f"*{end}")), reverse=True)
    found = {path.stem: path for path in files if not path.name.startswith(".")}
    return dict(sorted(found.items()))


def load_config(
    path: Path, root: Path, environment: str, known_environments: Collection[str]
) -> LoadedConfig:
    """Reads one model config, and returns it as an environment sees it; raises `UserError`."""
    return config_for(environment, read_config(path, root), known_environments)


def read_config(path: Path, root: Path) -> ConfigFile:
    """Reads one model config for all environments; raises `UserError` if it is unreadable."""
    document = read_document(path, relative(path, root))
    return ConfigFile(path, document, (*document.problems, *_twins(path), *secrets_in(document)))


def config_for(
    environment: str,
    file: ConfigFile,
    known_environments: Collection[str],
    defaults: Document | None = None,
    base: LoadedConfig | None = None,
) -> LoadedConfig:
    """Returns a model config as an environment sees it.

    Args:
        environment: its section of `environments` is laid over the rest of the file.
        known_environments: names that such a section may have.
        defaults: values for what the file does not say.
        base: of an adapter, as the environment sees it.

    Raises:
        InvalidConfigError: every problem of the file's form and values.
    """
    path, document, problems = file.path, file.document, [*file.problems]
    overlays = document.content.get(OVERLAYS)
    if isinstance(overlays, dict):
        problems += _misplaced(overlays, known_environments)
        if isinstance(overlays.get(environment), dict):
            document = document.overlaid((OVERLAYS, environment))
    if base is not None:
        problems += adapter_problems(document, base.config)
        document = over_base(document, base.document)
    if defaults is not None and defaults.content:
        document = document.over(defaults)
    config = _validated_config(document, problems)
    variants, of_variants = dict[str, LoadedConfig](), list[Problem]()
    for name, own in variant_documents(document):
        wrong: list[Problem] = []
        alone = _validated_config(own, wrong)
        of_variants += _in_file_order(own, wrong)
        if alone is not None:
            variants[name] = LoadedConfig(alone, own, name)
    renamed = any(problem.field[-1:] == ("name",) for problem in problems)
    if not renamed and document.content.get("name") not in (None, path.stem):
        problems.append(
            Problem(
                Code.NAME_IS_NOT_FILE_NAME,
                Kind.VALUE,
                f"{document.content['name']!r} is not the file's name, {path.stem!r}",
                f"Write `name: {path.stem}`, or rename the file.",
                ("name",),
            )
        )
    if problems or of_variants or config is None:
        if any(problem.code in (Code.UNKNOWN_FIELD, Code.UNKNOWN_CHOICE) for problem in problems):
            problems += other_pins(path.parent.parent)
        doubts = Doubts.of(document.problems, problems)
        known = valid_subset(ModelConfig, document.content, doubts)
        located = _in_file_order(document, problems)
        # What a variant shares with the file is wrong once.
        places = {each.location for each in located}
        located += (each for each in of_variants if each.location not in places)
        raise InvalidConfigError(_in_file_order(document, located), known, document)
    return LoadedConfig(config if base is None else as_adapter(config), document, variants=variants)


def _validated_config(document: Document, problems: list[Problem]) -> ModelConfig | None:
    config = _validate(ModelConfig, document, problems)
    serving = document.content.get("serving")
    container = serving.get("container") if isinstance(serving, dict) else None
    if isinstance(container, str) and (unusable := PACKAGES.problems.get(container)):
        place = ("serving", "container")
        problems[:] = [each for each in problems if each.field != place]
        problems.append(replace(unusable, field=place))
    return config


def _twins(path: Path) -> Iterator[Problem]:
    for suffix in SUFFIXES:
        twin = path.with_suffix(suffix)
        if suffix != path.suffix and twin.is_file():
            yield Problem(
                Code.TWO_FILES,
                Kind.SHAPE,
                f"{twin.name} is a second file for the model {path.stem!r}",
                "Remove or rename one of the two.",
            )


def _misplaced(
    overlays: Mapping[str, object], known_environments: Collection[str]
) -> Iterator[Problem]:
    """Yields the problems of sections for environments: unknown names and forbidden content."""
    for name, content in overlays.items():
        if name not in known_environments:
            hint = did_you_mean(name, known_environments)
            yield Problem(
                Code.UNKNOWN_ENVIRONMENT,
                Kind.VALUE,
                f"there is no environment {name!r}",
                f"{hint}{ENVIRONMENTS_FILE} has: {', '.join(known_environments) or 'none'}.",
                (OVERLAYS, name),
            )
        for key in ("name", OVERLAYS):
            if isinstance(content, dict) and key in content:
                yield Problem(
                    Code.MISPLACED_FIELD,
                    Kind.SHAPE,
                    f"`{key}` is the same in every environment",
                    "Remove this line.",
                    (OVERLAYS, name, key),
                )


def load_other(model: type[_Model], path: Path, root: Path) -> tuple[_Model, Document]:
    """Reads a YAML file of another kind; raises `UserError` with every problem in it."""
    document = read_document(path, relative(path, root))
    problems = [*document.problems, *secrets_in(document)]
    found = _validate(model, document, problems)
    if problems or found is None:
        raise UserError(_in_file_order(document, problems))
    return found, document


def environment_names(root: Path) -> list[str]:
    return names_in(read_environments(root))


def load_environment(name: str, root: Path) -> Environment:
    """Loads one environment; raises `UserError` if the file or the environment is wrong."""
    document = read_environments(root)
    names = names_in(document)
    if name not in names:
        hint = did_you_mean(name, names)
        raise UserError(
            [
                Problem(
                    Code.UNKNOWN_ENVIRONMENT,
                    Kind.VALUE,
                    f"there is no environment {name!r}",
                    f"{hint}Known are {', '.join(names) or 'none'}; choose one with `-c env=NAME` "
                    "(cdk) or `--env NAME` (slipway), or add it to the file.",
                    location=document.locate(()),
                )
            ]
        )
    problems = [*document.problems, *secrets_in(document), *misspelt_keys(document)]
    _validate_name(name, problems)
    environment = None
    project = _project(document, names, problems)
    content = document.content[name]
    if isinstance(content, dict):
        found: list[Problem] = []
        environment = _validate(
            Environment,
            document,
            found,
            prefix=(name,),
            content={**content, "name": name, "project": project},
        )
        # Both keys were looked at above.
        elsewhere = {
            (name, "name"): "an environment's name is its key in the file",
            (name, PROJECT_KEY): "the project is the same for every environment",
        }
        problems.extend(problem for problem in found if problem.field not in elsewhere)
        for (_, key), message in elsewhere.items():
            if key in content:
                problems.append(
                    Problem(
                        Code.MISPLACED_FIELD, Kind.SHAPE, message, "Remove this line.", (name, key)
                    )
                )
    else:
        problems.append(
            Problem(
                Code.NOT_A_MAPPING,
                Kind.SHAPE,
                "is not a mapping",
                "Give it `account` and `region`.",
                (name,),
            )
        )
    if environment is not None:
        problems.extend(environment_problems(environment, document.content, root))
    if problems or environment is None:
        raise UserError(_in_file_order(document, problems))
    # Not so `defaults`: a model is laid over them as a document, which keeps their places.
    policies = laid_over_shared(document, name, POLICIES_KEY).content
    return environment.model_copy(update={POLICIES_KEY: Policies.model_validate(policies)})


def _validate(
    model: type[_Model],
    document: Document,
    problems: list[Problem],
    *,
    prefix: tuple[str, ...] = (),
    content: object = None,
) -> _Model | None:
    # Of a value with two readings neither is checked: it is to be written otherwise anyway.
    known = {problem.field for problem in document.problems}
    try:
        return model.model_validate(document.content if content is None else content)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if is_secondary_error(detail):
                continue
            problem = describe(detail, model, document.written, prefix)
            if problem.field not in known:
                problems.append(problem)
        return None


def is_secondary_error(detail: ErrorDetails) -> bool:
    """Returns whether a list is "too short" only because its wrong items were not counted."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _project(document: Document, names: Collection[str], problems: list[Problem]) -> str:
    """Returns the project's name, empty without a right one; checks what all environments share."""
    content = {k: v for k, v in document.content.items() if k in SHARED_KEYS and k not in names}
    found = _validate(Shared, document, problems, content=content)
    return "" if found is None else found.project


def _validate_name(name: str, problems: list[Problem]) -> None:
    try:
        EnvironmentName(name=name)
    except ValidationError as error:
        problems.extend(
            replace(
                describe(detail, EnvironmentName, {}),
                kind=Kind.VALUE,
                remedy="Use lower-case letters and digits, a letter first.",
                field=(name,),
            )
            for detail in error.errors(include_url=False)
        )


def _in_file_order(document: Document, problems: Sequence[Problem]) -> list[Problem]:
    located = [p if p.location else _located(document, p) for p in problems]
    return sorted(located, key=lambda problem: (problem.location, problem.field.__repr__()))


def _located(document: Document, problem: Problem) -> Problem:
    place = document.locate(problem.field)
    if place.path == document.path:
        return problem.at(place)
    if problem.field not in document.positions:
        return problem.at(Location(document.path, 1, 1))  # what is missing belongs there
    remedy = f"{problem.remedy} A value in {document.path} comes before this default."
    return replace(problem, location=place, remedy=remedy)
