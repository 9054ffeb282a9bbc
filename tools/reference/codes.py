"""Renders docs/troubleshooting from the table of codes."""

import re
import shutil
import tempfile
import textwrap
from pathlib import Path

from slipway.codes.entry import Entry, Group
from slipway.codes.table import GROUPS, entries
from slipway.codes.text import explanation
from slipway.config.names import CONFIG_DIRECTORY, ENVIRONMENTS_FILE, LOCAL
from slipway.errors import UserError, dotted
from slipway.project import Project

_WIDTH = 110
_MODEL = "gpt2-autocomplete"
_MISTAKES = (
    ("[ml.g4dn.xlarge]", "[ml.g4dn.xlage]"),
    ("download_timeout_seconds: 600", "download_timeout_seconds: 59"),
)

# Errors that Slipway does not print, and the section of docs/operations.md that helps.
_SYMPTOMS = (
    ("`cdk deploy` fails with an error of CloudFormation or SageMaker", "What is wrong?"),
    ("The stack is rolled back", "What is wrong?"),
    (
        "An update of an autoscaled endpoint fails",
        "Changing an endpoint that is autoscaled",
    ),
    ("The endpoint is `Failed`, or stays `Creating`", "What is wrong?"),
    ("`ping health check` failed", "Its log"),
    ("You need the container's log", "Its log"),
    ("Requests fail with 4XX or 5XX", "Does it answer?"),
    ("An alarm goes off", "Its alarms"),
    ("Something is billed after `cdk destroy`", "Is anything left?"),
)

_INDEX = """\
# Troubleshooting

This page is for everybody who has an error on the screen. At its end you know where the error
comes from, and which section has the remedy.

Slipway reports what you can put right as *problems*. Each problem ends with a code in brackets,
such as `[SW201]`. Look the code up in the [table of codes](#codes), or search the site for it.

## Symptoms without a code

Errors of AWS, of the CDK CLI and of containers have no code. These sections of
[Operations](../operations.md) help:

| symptom | where to look |
|---|---|
{symptoms}

[Refusals](../embedded-aws/refusals.md) lists the errors of AWS that the embedded AWS repeats. A
command that ends with a traceback and exit code 2 has a fault: please report it, as the last line
of the output says.

## How to read a problem

A command collects all problems before it stops. This report has two:

```console
{report}
```

Each problem has these parts, in this order:

| part | in the first problem |
|---|---|
| place: file, line and column | `{place}` |
| field | `{field}` |
| message, with the value and what is allowed | `{message}` |
| code | `[{code}]` |
| remedy, on a line of its own | {remedy} |

A problem outside a file, such as missing credentials, has no place and no field. A code never
gets another meaning. The wording of a message may change with a release.

`slipway explain CODE` prints the explanation without the site:

```console
$ slipway explain {code}
{explanation}
```

**For scripts.** With `--json`, a command prints its problems as one JSON document on standard
output. Each problem has the keys `code`, `kind`, `file`, `line`, `column`, `field`, `message` and
`remedy`. `kind` is `shape`, `value`, `compatibility` or `state`. The exit code is 1 in both forms.

**In a code review.** `slipway validate --sarif problems.sarif` writes the problems as SARIF 2.1.0.
The code is the rule's id, and the rule has the explanation of these pages. Services that read
SARIF show each problem beside its line.

**In the CDK.** A model with problems becomes an empty stack, and the report is an error of that
stack. `cdk deploy`, `cdk diff` and `cdk destroy` of the other models still work.

**Warnings** of `slipway plan` stop nothing. They have names instead of codes, such as
`single-instance`.

## Codes

| codes | problems |
|---|---|
{groups}
"""


def pages(root: Path) -> dict[str, str]:
    """Returns the pages as Markdown, by their paths in docs.

    Args:
        root: the repository; one of its configs is the example.
    """
    index = {"troubleshooting/index.md": _index(example(root))}
    return index | {f"troubleshooting/{group.page}.md": _page(group) for group in GROUPS}


def example(root: Path) -> UserError:
    """Returns the report on a shipped config with two mistakes."""
    text = (root / CONFIG_DIRECTORY / f"{_MODEL}.yaml").read_text("utf-8")
    for right, wrong in _MISTAKES:
        if right not in text:
            raise ValueError(f"{_MODEL} has no {right!r} for the example")
        text = text.replace(right, wrong)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copy(root / ENVIRONMENTS_FILE, project)
        (project / CONFIG_DIRECTORY).mkdir()
        (project / CONFIG_DIRECTORY / f"{_MODEL}.yaml").write_text(text, "utf-8")
        try:
            Project(project).config(_MODEL, LOCAL)
        except UserError as error:
            return error
    raise ValueError(f"{_MODEL} has no mistakes")


def _index(report: UserError) -> str:
    first = report.problems[0]
    return _INDEX.format(
        report=f"$ slipway validate\n{report}",
        place=first.location,
        field=dotted(first.field),
        message=first.message,
        remedy=first.remedy,
        code=first.code,
        explanation=explanation(entries()[first.code]),
        symptoms="\n".join(_symptom_row(*each) for each in _SYMPTOMS),
        groups="\n".join(map(_group_row, GROUPS)),
    )


def _symptom_row(symptom: str, section: str) -> str:
    return f"| {symptom} | [{section}](../operations.md#{_anchor(section)}) |"


def _group_row(group: Group) -> str:
    return f"| SW{group.first} to SW{group.last} | [{group.title}]({group.page}.md) |"


def _page(group: Group) -> str:
    lines = [f"# {group.title}", "", _wrapped(group.introduction), ""]
    lines += [
        "[How to read a problem](index.md#how-to-read-a-problem) describes the parts of a message.",
        "",
    ]
    lines += ["| code | problem |", "|---|---|"]
    lines += [
        f"| [{each.code}](#{_anchor(_heading(each))}) | {each.title} |" for each in group.entries
    ]
    for each in group.entries:
        lines += ["", f"## {_heading(each)}", "", _wrapped(each.cause), ""]
        lines += [_wrapped(f"**Remedy.** {each.remedy}")]
    return "\n".join(lines) + "\n"


def _heading(entry: Entry) -> str:
    return f"{entry.code}: {entry.title}"


def _anchor(heading: str) -> str:
    # As code hosts and MkDocs write anchors: lower case, punctuation dropped, spaces as hyphens.
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
