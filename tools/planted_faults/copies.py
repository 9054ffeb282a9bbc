"""A copy of the project with a virtual environment in which every process imports the copy.

The project's own environment has an editable package that points at the checkout. The copy's
environment is small: its path has the copy first, and then the path of the project's environment.
That holds for console scripts, for programs that inherit no variables, and with `python -I`.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import uuid
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tools.planted_faults import PACKAGES, PlantedFaultsError

_NOT_COPIED: Final = (
    ".git", ".venv", "node_modules", "build", "cdk.out", ".slipway", "__pycache__", "*.egg-info",
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
)  # fmt: skip
PYTEST_OPTIONS: Final = ("-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=0")
# Marks the processes that a run starts, however they detach themselves.
_MARK: Final = "PLANTED_FAULTS_RUN"
_NOT_INHERITED: Final = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "PYTEST_",
    "COVERAGE_",
    "PLANTED_FAULTS_",
)
_GRACE_SECONDS: Final = 10.0
# A fault may make a program ask for memory without end.
_PROCESS_GIB: Final = 12
_IMPORTED_FROM: Final = (
    "import importlib.util, sys\n"
    "for name in sys.argv[1:]: print(importlib.util.find_spec(name).origin)"
)
_IN_A_SUBPROCESS: Final = (
    "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
)


class Copy:
    """A project's copy; use as a context manager.

    Attributes:
        project: the copy's root.
        python: the interpreter of its environment.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = Path(tempfile.mkdtemp(prefix="planted-")).resolve()
        self._scratch = self._folder / "t"
        self._packages = Path()
        self.project = self._folder / "project"
        self.python = self.project / ".venv" / "bin" / "python"

    def __enter__(self) -> Self:
        try:
            self._copy()
            self._make_environment()
            self._check()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add_module(self, file: Path, name: str) -> None:
        """Adds a file as a module to the copy's environment, outside the project."""
        shutil.copy(file, self._packages / f"{name}.py")

    def add_start(self, name: str, line: str) -> None:
        """Makes every interpreter of the copy's environment run a line when it starts."""
        (self._packages / f"{name}.pth").write_text(f"{line}\n", "utf-8")

    @contextlib.contextmanager
    def changed(self, file: str, content: bytes, number: int) -> Iterator[None]:
        """Replaces the content of a file inside the block.

        Args:
            file: relative to the project.
            content: the whole file.
            number: different in each call, since compiled files are told apart by time and size
                only.
        """
        path = self.project / file
        original, status = path.read_bytes(), path.stat()
        later = int(status.st_mtime) + number + 1
        try:
            path.write_bytes(content)
            os.utime(path, (later, later))
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(
        self,
        *arguments: str,
        variables: Mapping[str, str],
        seconds: float | None = None,
        output: Path | None = None,
    ) -> int | None:
        """Runs Python with arguments in the copy, and ends processes that it leaves behind.

        Args:
            *arguments: arguments of the interpreter.
            variables: added to the environment.
            seconds: time after which it is killed.
            output: a file for its output; by default the output is printed here.

        Returns:
            The exit status, or None if it was killed.
        """
        mark = uuid.uuid4().hex
        self._scratch.mkdir(exist_ok=True)
        environment = self._environment() | dict(variables) | {_MARK: mark}
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(output.open("wb")) if output else None
            process = subprocess.Popen(  # noqa: S603  # fixed arguments
                [self.python, *arguments],
                cwd=self.project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT if sink else None,
                start_new_session=True,
                preexec_fn=_limit_memory,
            )
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                self._end(process, mark)

    def _end(self, process: subprocess.Popen[bytes], mark: str) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # fixtures stop the processes that they started
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pid in _marked(f"{_MARK}={mark}".encode()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
        }
        path = f"{self.python.parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
        storage = str(self._scratch / "hypothesis")
        return kept | {
            "PATH": path,
            "TMPDIR": str(self._scratch),
            "HYPOTHESIS_STORAGE_DIRECTORY": storage,
        }

    def _copy(self) -> None:
        ignored = shutil.ignore_patterns(*_NOT_COPIED)
        shutil.copytree(self._root, self.project, symlinks=True, ignore=ignored)
        (self.project / "build").mkdir()
        for path in [self._root / "node_modules", *(self._root / "build").glob("*")]:
            if path.exists() and path.name != "planted_faults":
                (self.project / path.relative_to(self._root)).symlink_to(path)

    def _make_environment(self) -> None:
        home = self.project / ".venv"
        venv.create(home, symlinks=True)
        variables = {"base": str(home), "platbase": str(home)}
        self._packages = Path(sysconfig.get_path("purelib", vars=variables))
        installed = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
        self._packages.joinpath("planted.pth").write_text(
            f"{self.project}\n"
            + "".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(installed)),
            "utf-8",
        )
        for script in Path(sysconfig.get_path("scripts")).iterdir():
            ours = self.python.with_name(script.name)
            if script.is_dir() or ours.exists():
                continue
            content = script.read_bytes() if script.stat().st_size < 2**16 else b""
            shebang, _, rest = content.partition(b"\n")
            if (
                shebang.startswith(b"#!")
                and Path(os.fsdecode(shebang[2:].strip())) in _INTERPRETERS
            ):
                ours.write_bytes(b"#!" + os.fsencode(self.python) + b"\n" + rest)
                ours.chmod(0o755)
            else:
                ours.symlink_to(script)

    def _check(self) -> None:
        """Checks that programs import the copy, in any folder and whatever they inherit."""
        there = [name for name in PACKAGES if (self.project / name).is_dir()]
        told = ""
        for options in ([], ["-I"], ["-c", _IN_A_SUBPROCESS]):
            told += subprocess.run(  # noqa: S603  # fixed arguments
                [self.python, *options, "-c", _IMPORTED_FROM, *there],
                cwd=self._folder, env={}, capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
        files = told.split()
        outside = [file for file in files if not Path(file).is_relative_to(self.project)]
        if outside or len(files) != 3 * len(there):
            raise PlantedFaultsError(
                f"programs of the copy {self.project} import {', '.join(outside) or 'nothing'}"
            )


_INTERPRETERS: Final = frozenset(
    Path(sysconfig.get_path("scripts"), name)
    for name in ("python", "python3", Path(sys.executable).name)
)


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_PROCESS_GIB * 2**30, hard))


def _marked(mark: bytes) -> list[int]:
    """Returns the processes with a variable; none if there is no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def run_pytest(copy: Copy, plugin: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Returns the interpreter's arguments for a run of pytest with one of this package's plugins.

    Args:
        copy: gets the plugin as a module.
        plugin: a module of this package, without `.py`.
        arguments: paths and options of pytest.
    """
    module = f"planted_faults_{plugin}"
    copy.add_module(Path(__file__).with_name(f"{plugin}.py"), module)
    return ("-m", "pytest", "-p", module, *PYTEST_OPTIONS, *arguments)
