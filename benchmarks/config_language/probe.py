"""Runs in each fresh process: imports Slipway's command line, does one task, prints readings.

    python -P probe.py import | validate | review | plan NAME

The last line of standard output is JSON. No module that Slipway needs may be imported here before
its import has been timed.
"""

import sys
import time

_LOCAL = "local"


def main(task: str, *names: str) -> None:
    started = time.perf_counter()
    import slipway.cli.main

    if task != "import":
        # The commands that read configs import it themselves.
        import slipway.project

    imported = time.perf_counter()
    if task == "validate":
        _run(slipway.cli.main.main, "validate")
    elif task == "review":
        _run(slipway.cli.main.main, "review", "--base", "HEAD")
    elif task == "plan":
        _plan(names[0])
    readings = {"import_seconds": imported - started}
    if task != "import":
        readings["task_seconds"] = time.perf_counter() - imported
    readings["peak_memory_bytes"] = peak_memory_bytes()

    import json

    print(json.dumps(readings))


def _run(run_command, *arguments: str) -> None:  # type: ignore[no-untyped-def]  # typing is not imported yet
    sys.argv = ["slipway", *arguments]
    try:
        run_command()
    except SystemExit as ended:
        if ended.code:
            raise


def _plan(name: str) -> None:
    """Makes one plan as `slipway plan NAME --allow-unpublished` does."""
    from slipway.cli.output import current_project

    project = current_project()
    plan = project.plan(name, project.environment(_LOCAL), allow_unpublished=True)
    print(plan.endpoint_name)


def peak_memory_bytes() -> int:
    """Returns the most physical memory that this process has held.

    Linux's `ru_maxrss` would begin with the parent's memory at the fork.
    """
    try:
        with open("/proc/self/status") as status:  # noqa: PTH123  # pathlib is Slipway's to import
            mark = next(line for line in status if line.startswith("VmHWM:"))
        return int(mark.split()[1]) * 1024
    except FileNotFoundError:  # macOS, whose figure is in bytes
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(*sys.argv[1:])
