"""Imports settings of LMI models, and looks at the plan of the result."""

from collections.abc import Mapping
from typing import Any

import yaml

from slipway.config.schema import ModelConfig
from slipway.importing.draft import KnownFacts
from slipway.importing.lmi.drafts import LmiDraft
from slipway.importing.lmi.images import suitable_draft
from slipway.importing.lmi.source import PROPERTIES_FILE, LmiSource
from slipway.planning.families import deployment_of
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.lock import Lock
from slipway.planning.resolve import resolve
from tests.support.projects import PRODUCTION

WEIGHTS = {"source": "s3", "uri": "s3://acme-models/chat/"}
URI = WEIGHTS["uri"]
FACTS = KnownFacts(
    "chat", instance="ml.g5.12xlarge", family="llama", parameters=6_738_415_616, weights=WEIGHTS
)


def source_of(settings: Mapping[str, str], **files: bytes) -> LmiSource:
    """Returns the settings of a folder, with further files by name."""
    return LmiSource(
        origin=f"old/{PROPERTIES_FILE}",
        kind=PROPERTIES_FILE,
        settings=settings,
        files=files,
    )


def imported(settings: Mapping[str, str], given: KnownFacts = FACTS, **files: bytes) -> LmiDraft:
    """Imports settings."""
    return suitable_draft(source_of(settings, **files), given, {}, PRODUCTION)


def config_of(made: LmiDraft) -> ModelConfig:
    """Returns the config that the YAML of a draft is."""
    content: Any = yaml.safe_load(made.draft.render("old"))
    return ModelConfig.model_validate(content)


def deployment(made: LmiDraft) -> Lmi:
    """Returns the deployment of an imported config in production."""
    found = deployment_of(config_of(made), PRODUCTION)
    assert isinstance(found, Lmi)
    return found


def require_plan(made: LmiDraft) -> None:
    """Plans an imported config; raises `UserError` with all that is refused."""
    resolve(deployment_of(config_of(made), PRODUCTION), Lock(), {}, allow_unpublished=True)


def reasons(made: LmiDraft) -> dict[str, str]:
    """Returns the reason of each setting that the config does not have."""
    return {setting.shown: setting.reason for setting in made.draft.left_out}
