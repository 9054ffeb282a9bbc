"""What becomes of each source: settings of LMI, a notebook's call, an endpoint, a checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts
from slipway.config.environments import Environment
from slipway.config.starter import parse_weights
from slipway.errors import UserError
from slipway.importing.call import Call, read_call
from slipway.importing.checkpoints import checkpoint_place, hub_place, require_generator
from slipway.importing.custom import custom_draft, weights_place
from slipway.importing.draft import FieldName, Guess, ImportResult, KnownFacts
from slipway.importing.instances import REASON, cheapest_instance, reference
from slipway.importing.live_endpoint import LiveEndpoint, copy_steps, read_live
from slipway.importing.lmi import source as lmi_source
from slipway.importing.lmi.images import image_of, suitable_draft
from slipway.importing.lmi.settings import SERVED_TASKS, checkpoint_draft
from slipway.importing.lmi.source import LmiSource, read_directory
from slipway.importing.lmi.variables import source_of_call, source_of_package
from slipway.importing.networks import guessed_network, read_network
from slipway.importing.neuron import neuron_section
from slipway.importing.own_images import SectionOf, own_draft, own_image
from slipway.importing.tensorrt import tensorrt_section
from slipway.importing.triton import release_of, repository_draft, triton_section
from slipway.importing.weights import WeightsPlace, is_commit

NEEDED: Final = ("weights", "family", "parameters", "instance")
"""The facts without which there is no config."""

_OWN_SECTIONS: Mapping[str, SectionOf] = {
    "neuron": neuron_section,
    "tensorrt": tensorrt_section,
    "triton": triton_section,
}


@dataclass(frozen=True)
class Importer:
    """Makes a config of a source, together with what the user says.

    Args:
        weights: place of the weights as the user says it; None where the source says it.
        ask: returns the needed facts that nothing tells, by name; is told why the source names no
            weights.
    """

    root: Path
    environments: Sequence[Environment]
    given: KnownFacts
    weights: str | None
    ask: Callable[[Sequence[str], str], Mapping[str, Any]]

    def of_properties(self, directory: Path) -> ImportResult:
        source = read_directory(directory, directory.as_posix().rstrip("/"))
        return self._of_lmi(source, self.given)

    def of_call(self, path: Path) -> ImportResult:
        """Returns the config of a notebook's call; raises `UserError` if no image is named."""
        call, given = read_call(path, path.as_posix()), self.given
        given = replace(
            given, instance=given.instance or call.instance, endpoint=call.endpoint, tags=call.tags
        )
        if image_of(call.image_uri or "") or (call.image_uri is None and given.framework):
            return self._of_lmi(source_of_call(call), _with_image(given, call))
        if call.image_uri is None:
            raise UserError.of(
                Code.IMPORT_NO_IMAGE,
                f"{call.origin} has no `image_uri`: the SDK chose the image",
                "Add `image_uri` to the file: the notebook prints it with `model.image_uri` after "
                "the deploy. For an LMI image, give `--framework` and `--version` instead.",
            )
        place = weights_place(call)
        if (release := release_of(call.image_uri)) is None:
            given, guesses = self._completed(given, place)
            return ImportResult(custom_draft(call, given, guesses), call.origin)
        folder = f"build/{given.name}"
        place = replace(place, section={"source": "path", "path": folder})
        given, guesses = self._completed(given, place)
        draft = repository_draft(call, given, guesses, release, folder)
        return ImportResult(draft, call.origin, first=copy_steps(call, folder))

    def of_endpoint(self, endpoint: str, region: str | None) -> ImportResult:
        """Returns the config of an endpoint; raises `UserError` if it cannot be read or said."""
        live = read_live(endpoint, region, self.given)
        call, given, image_uri = live.call, live.given, live.call.image_uri or ""
        if call.private_registry is None and image_of(image_uri) is not None:
            # Its settings are variables, or lie in a package beside them.
            package = live.package()
            source = source_of_package(call, package) if package.files else source_of_call(call)
            made = self._of_lmi(source, _with_image(given, call), live)
            return live.made(made, self.environments)
        given, guesses = self._completed(given, weights_place(call), live)
        own = own_image(image_uri)
        if call.private_registry is not None:
            draft = custom_draft(call, given, guesses)
        elif own is not None and own.family in _OWN_SECTIONS:
            draft = own_draft(call, given, guesses, own.tag, _OWN_SECTIONS[own.family])
        elif (release := release_of(image_uri)) is not None:
            draft = repository_draft(call, given, guesses, release, live.folder)
        else:
            draft = custom_draft(call, given, guesses)
        return live.made(ImportResult(draft, live.origin), self.environments)

    def of_checkpoint(self, checkpoint: str) -> ImportResult:
        """Returns the config of a checkpoint; raises `UserError` if it is no readable generator."""
        place = checkpoint_place(checkpoint, self.root)
        given = self.given
        if place.facts.task not in SERVED_TASKS:
            require_generator(read_network(given, place), place)
        given, guesses = self._completed(given, place, proposes_instance=True)
        if place.repository is not None and self.weights is None and not is_commit(place.branch):
            reason = f"the present commit of `{place.branch}`."
            guesses["artifacts", "weights", "revision"] = Guess(reason)
        made = checkpoint_draft(place.facts, given, guesses, self._reference, origin=checkpoint)
        return ImportResult(made.draft, checkpoint, made.added)

    def _of_lmi(
        self, source: LmiSource, given: KnownFacts, live: LiveEndpoint | None = None
    ) -> ImportResult:
        place = lmi_source.weights_place(source, self.root)
        given, guesses = self._completed(given, place, live)
        made = suitable_draft(source, given, guesses, self._reference)
        return ImportResult(made.draft, source.origin, made.added)

    def _completed(
        self,
        given: KnownFacts,
        place: WeightsPlace,
        live: LiveEndpoint | None = None,
        *,
        proposes_instance: bool = False,
    ) -> tuple[KnownFacts, dict[FieldName, Guess]]:
        """Returns all facts that a config needs; asks for those that nothing tells."""
        guesses: dict[FieldName, Guess] = {}
        if self.weights is not None:
            place = replace(place, section=parse_weights(self.weights), size_gb=None)
        else:
            if live is not None:
                place = live.placed(place)
            if place.section is None and place.repository is not None:
                place, guesses = _on_the_hub(place)
            elif place.repository is not None and place.size_gb is None and not given.is_told:
                place = _as_the_hub_says(place)
        given = read_network(replace(given, weights=place.section), place)
        given, network = guessed_network(
            given, _checkpoint_name(place.section), place.name, unread=place.unread
        )
        guesses |= network
        if live is not None:
            given, rough = live.roughly(given, place)
            guesses |= rough
        if proposes_instance and given.instance is None and given.is_told:
            given = replace(given, instance=self._cheapest(given, place.facts))
            if given.instance is not None:
                guesses["endpoint", "instances"] = Guess(REASON)
        if missing := [name for name in NEEDED if getattr(given, name) is None]:
            given = replace(given, **self.ask(missing, place.missing or place.unread))
        return given, guesses

    def _cheapest(self, given: KnownFacts, facts: CheckpointFacts) -> str | None:
        def content_on(name: str) -> Mapping[str, Any]:
            on_type = replace(given, instance=name)
            return checkpoint_draft(facts, on_type, {}, self._reference, origin="").draft.content

        return cheapest_instance(facts, content_on, self._reference)

    @property
    def _reference(self) -> Environment:
        return reference(self.environments)


def _with_image(given: KnownFacts, call: Call) -> KnownFacts:
    framework, version = image_of(call.image_uri or "") or (None, None)
    return replace(given, framework=given.framework or framework, version=given.version or version)


def _checkpoint_name(section: Mapping[str, Any] | None) -> str:
    names = [text for key, text in (section or {}).items() if key in ("repository", "uri", "path")]
    return str(names[0]) if names else ""


def _on_the_hub(place: WeightsPlace) -> tuple[WeightsPlace, dict[FieldName, Guess]]:
    """Asks the Hub about weights whose commit the source does not name; raises `UserError`."""
    try:
        found = hub_place(place)
    except UserError as error:
        raise UserError(
            replace(
                problem,
                message=f"{place.missing}: {problem.message}",
                remedy=f"{problem.remedy} Or name the commit: `--weights "
                f"hub:{place.repository}@COMMIT`.",
                field=(),
            )
            for problem in error.problems
        ) from None
    guess = Guess(f"`{place.name}` names no commit. This is the present one of `{place.branch}`.")
    return found, {("artifacts", "weights", "revision"): guess}


def _as_the_hub_says(place: WeightsPlace) -> WeightsPlace:
    """Returns the place of a commit with what its files say; else with the reason why not."""
    try:
        return hub_place(place)
    except UserError as error:
        # The name tells enough for guesses, which then have the reason beside them.
        return replace(place, unread=error.problems[0].message)
