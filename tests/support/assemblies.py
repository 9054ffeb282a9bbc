"""Assemblies: what `cdk synth` writes, deployed by many tests.

Synthesis takes ten seconds of a core, and the CDK CLI takes two with an assembly that is there.
"""

import hashlib
import shutil
from pathlib import Path


def deploy_command(assembly: Path | str, *names: str) -> tuple[str, ...]:
    return (
        *("cdk", "deploy", *names, "--app", str(assembly), "--exclusively"),
        *("--require-approval", "never"),
    )


def destroy_command(assembly: Path | str, *names: str) -> tuple[str, ...]:
    return ("cdk", "destroy", *names, "--app", str(assembly), "--exclusively", "--force")


def changed_copy(assembly: Path, to: Path, name: str, old: str, new: str) -> Path:
    """Copies an assembly with a change in one stack's template, as another synthesis would."""
    shutil.copytree(assembly, to)
    template = to / f"{name}.template.json"
    text = template.read_text("utf-8")
    assert old in text, f"{template.name} has no {old}"
    template.write_text(text.replace(old, new), "utf-8")
    # The CLI uploads a template under its digest, and takes what is there for the same.
    before = hashlib.sha256(text.encode()).hexdigest()
    after = hashlib.sha256(template.read_bytes()).hexdigest()
    for file in (to / "manifest.json", to / f"{name}.assets.json"):
        content = file.read_text("utf-8")
        assert before in content, f"{file.name} does not name the template"
        file.write_text(content.replace(before, after), "utf-8")
    return to
