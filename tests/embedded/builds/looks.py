"""What tests look at of a build."""

from typing import Any

from tests.embedded.builds.conftest import Account


def phases(build: dict[str, Any]) -> dict[str, str]:
    return {each["phaseType"]: each.get("phaseStatus", "") for each in build["phases"]}


def context(build: dict[str, Any], phase: str) -> tuple[str, str]:
    (found,) = [each for each in build["phases"] if each["phaseType"] == phase]
    (only,) = found["contexts"]
    return only["statusCode"], only["message"]


def output(account: Account, build: dict[str, Any]) -> list[str]:
    return [line for line in account.log(build) if not line.startswith("[Container] ")]
