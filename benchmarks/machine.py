"""The circumstances that a result must name, so that readers know which results compare."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_VERSION_SECONDS = 60
# What benchmarks write. Several can then measure one commit, one after the other.
_RESULTS = (":!benchmarks/results", ":!docs/pictures")


@dataclass(frozen=True)
class Machine:
    system: str
    processor: str
    core_count: int  # logical cores that this process may use
    memory_bytes: int
    load_average: float
    """Runnable processes over the last minute, when the benchmark began.

    Far above zero means that other programs were using the machine.
    """
    versions: dict[str, str]


@dataclass(frozen=True)
class Commit:
    """The measured commit, and whether the tree differed from it, apart from results."""

    id: str
    modified: bool


def program_path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def describe_machine(programs: Sequence[str], packages: Sequence[str]) -> Machine:
    versions = {"python": platform.python_version()}
    versions |= {program: _output(program, "--version").splitlines()[0] for program in programs}
    versions |= {package: metadata.version(package) for package in packages}
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        core_count=core_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        load_average=round(os.getloadavg()[0], 2),
        versions=versions,
    )


def describe_commit(root: Path) -> Commit | None:
    """Returns the commit of a working tree, in which results do not count as a modification."""
    try:
        identifier = _output("git", "-C", str(root), "rev-parse", "HEAD")
        changes = _output("git", "-C", str(root), "status", "--porcelain", "--", ".", *_RESULTS)
    except (OSError, subprocess.CalledProcessError):
        return None
    return Commit(identifier, modified=bool(changes))


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", information.read_text("utf-8"), re.M)
        if found:
            return found[1]
    elif platform.system() == "Darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    return platform.processor() or platform.machine()


def core_count() -> int:
    # Fewer than the machine has in a container with a limit; macOS cannot tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _output(*command: str) -> str:
    return subprocess.run(  # noqa: S603  # fixed arguments, no shell
        command,
        env={**os.environ, "PATH": program_path()},
        capture_output=True,
        text=True,
        check=True,
        timeout=_VERSION_SECONDS,
    ).stdout.strip()
