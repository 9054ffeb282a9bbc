"""Command lines of pages: whether they are commands that exist, with options that exist."""

import re
import shlex
from itertools import takewhile

from tests.support.pages import ROOT
from tools.reference.commands import commands

CDK_COMMANDS = {"bootstrap", "deploy", "destroy", "diff", "rollback", "synth"}
TARGETS = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def check_command(line: str) -> None:
    """Fails where a line names no command of `slipway`, `make` or `cdk`, or a wrong option."""
    inner = re.sub(r'^eval "\$\((.*)\)"', r"\1", line)
    # Only the first command of a pipe or of alternatives.
    words = list(takewhile(lambda word: word not in ("|", "||"), shlex.split(inner, comments=True)))
    if words[:1] == ["slipway"]:
        found = commands()
        count = 2 if words[1] == "local" else 1
        found[" ".join(words[1 : 1 + count])].make_context("slipway", words[1 + count :])
    elif words[:1] == ["make"]:
        targets = [word for word in words[1:] if "=" not in word and word != "&&"]
        assert targets[:1], line
        assert targets[0] in TARGETS, line
    elif words[:1] == ["cdk"]:
        assert words[1] in CDK_COMMANDS, line
