"""Finds secrets in a file by their form, so that none is committed or rendered into a template."""

import re
from collections.abc import Iterator
from typing import Any

from slipway.codes.code import Code
from slipway.config.document import Document
from slipway.errors import FieldPath, Kind, Problem

# The forms that the issuers document; GitHub's and GitLab's secret scanners go by them too.
_FORMS = (
    ("a Hugging Face token", re.compile(r"\b(hf|api_org)_[A-Za-z0-9]{30,}")),
    ("an AWS access key", re.compile(r"\b(AKIA|ASIA)[A-Z2-7]{16}\b")),
    ("a GitHub token", re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{60,})")),
)
# Credentials whose values have no form of their own.
_CREDENTIALS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_REFERENCE = "{{resolve:secretsmanager:"
_IN_VARIABLE = (
    "Revoke it, since the file may be copied. Store the new one in AWS Secrets Manager, and write "
    f'`"{_REFERENCE}NAME}}}}"`: CloudFormation puts the value in at a deploy. The embedded AWS '
    "resolves no secrets: override the variable under `environments.local`."
)
_ELSEWHERE = (
    "Remove it and revoke it, since the file may be copied. Only variables under "
    "`serving.environment` may refer to a secret of AWS Secrets Manager."
)
_ROLE = "Remove it: the endpoint's own role gives the container its credentials."


def secrets_in(document: Document) -> Iterator[Problem]:
    """Yields the problem of each secret in a file; no message shows the secret itself."""
    for field, text in _texts(document.content, ()):
        found = secret_kind(field, text)
        if found is None:
            continue
        is_variable = field[-2:-1] == ("environment",)
        remedy = _IN_VARIABLE if is_variable else _ELSEWHERE
        if "AWS" in found and is_variable:
            remedy = _ROLE
        yield Problem(
            Code.CREDENTIAL_IN_FILE, Kind.VALUE, f"the value has the form of {found}", remedy, field
        )


def secret_kind(field: FieldPath, text: str) -> str | None:
    """Returns what secret a text is by its form or by its field; None for any other text."""
    if field and field[-1] in _CREDENTIALS and text and not text.startswith(_REFERENCE):
        return "an AWS access key"
    return next((kind for kind, form in _FORMS if form.search(text)), None)


def _texts(content: Any, field: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(content, str):
        yield field, content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from _texts(value, (*field, key))
    elif isinstance(content, list):
        for index, item in enumerate(content):
            yield from _texts(item, (*field, index))
