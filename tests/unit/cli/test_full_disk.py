"""A disk that is full or read-only is the user's problem, and leaves no temporary file."""

import errno
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from slipway.full_disk import no_room_problem
from slipway.publishing.whole_files import replace_file

ROOT = Path(__file__).parents[3]
# A file system of its own; then the command, in a project on it.
MOUNTED = """
set -eu
mount -t tmpfs -o size=256k tmpfs "$1"
cp environments.yaml "$1" && mkdir "$1/model_configs" "$1/tmp"
cd "$1"
{prepare}
export TMPDIR="$1/tmp"
shift
status=0
"$@" || status=$?
find . -type f ! -name filler | sort
exit $status
"""
FILLED = "cat /dev/zero > filler 2>/dev/null || true"
READ_ONLY = 'mount -o remount,ro "$1"'


INIT = (
    *("init", "own", "--container", "tensorrt", "--family", "gpt2", "--parameters", "124000000"),
    *("--instance", "ml.g5.xlarge", "--sample", "sample", "--latency-milliseconds", "600"),
)
PROGRAMS = f"{Path(sys.executable).parent}:/usr/bin:/bin"
SLIPWAY = (sys.executable, "-c", "from slipway.cli.main import main; main()")
REPLACE = (
    sys.executable,
    "-c",
    "from pathlib import Path; from slipway.publishing.whole_files import replace_file\n"
    "replace_file(Path('a.lock'), 'x' * 300_000, scratch=Path('.slipway'))",
)


def on(prepare: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    script = MOUNTED.replace("{prepare}", prepare)
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(folder),
         *command],
        cwd=ROOT, env={"PATH": PROGRAMS, "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.namespaces
@pytest.mark.parametrize(
    ("prepare", "reason", "remedy"),
    [
        (FILLED, "No space left on device", "Make room, and run the command again."),
        (READ_ONLY, "Read-only file system", "Run the command where it may write"),
    ],
)
@pytest.mark.parametrize("command", [INIT, ("schema",)])
def test_a_command_that_cannot_write_says_why(prepare, reason, remedy, command, tmp_path):
    ended = on(prepare, tmp_path, *SLIPWAY, *command)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert f"cannot be written: {reason} [SW615]" in ended.stderr
    assert remedy in ended.stderr


# The CDK writes the templates by Node.
APP = (
    *("env", 'CDK_CONTEXT_JSON={"models": "gpt2-autocomplete"}'),
    *("CDK_OUTDIR=cdk.out", f"TMPDIR={tempfile.gettempdir()}", f"HOME={Path.home()}"),
    *(sys.executable, str(ROOT / "app.py")),
)


@pytest.mark.namespaces
@pytest.mark.size("all")
def test_a_synthesis_that_cannot_write_says_why(tmp_path):
    ended = on(FILLED, tmp_path, *APP)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "cannot be written: No space left on device [SW615]" in ended.stderr


@pytest.mark.namespaces
def test_a_lock_that_does_not_fit_leaves_no_temporary_file(tmp_path):
    ended = on("", tmp_path, *REPLACE)
    assert "No space left on device" in ended.stderr
    assert ended.stdout == "./environments.yaml\n"


def test_a_file_that_cannot_be_written_is_named_and_other_errors_stay_what_they_are():
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        found = no_room_problem(OSError(number, "why", "/x/y"))
        assert "/x/y cannot be written: why" in str(found)
    no_folder = "No usable temporary directory found in ['/tmp']"
    assert "Make room" in str(no_room_problem(FileNotFoundError(errno.ENOENT, no_folder)))
    others = (
        OSError(errno.EIO, "why"),
        FileNotFoundError(2, "x"),
        KeyError(),
        RuntimeError("ENOENT"),
    )
    assert not any(map(no_room_problem, others))


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.lock"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "\ud800", scratch=tmp_path / "scratch")
    assert (path.read_text(), list((tmp_path / "scratch").iterdir())) == ("old", [])
    replace_file(path, "new", scratch=tmp_path / "scratch")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o644)
