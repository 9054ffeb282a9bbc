"""What a publish shows while it works: moving on a terminal, lines elsewhere."""

import io

from rich.console import Console

from slipway.cli.publish_progress import ProgressBar


def shown(*times: float, terminal: bool = False) -> tuple[ProgressBar, io.StringIO]:
    text, clock = io.StringIO(), iter(times)
    console = Console(file=text, force_terminal=terminal, width=200, highlight=False)
    return ProgressBar(console, *([lambda: next(clock)] if times else [])), text


def test_elsewhere_a_job_has_a_line_for_each_change_and_a_short_upload_has_none():
    bar, text = shown()
    with bar:
        bar.start(1000)
        bar.advance(1000)
        for state, seconds in (
            ("Starting", 0.4), ("Starting", 1.9), ("Training", 65.0), ("Training", 80.0),
            ("Completed", 3671.0),
        ):  # fmt: skip
            bar.job("job", state, seconds)
        bar.note("[brackets] stay")
    assert text.getvalue() == (
        "job: Starting, 0:00\njob: Training, 1:05\njob: Completed, 61:11\n[brackets] stay\n"
    )


def test_on_a_terminal_a_bar_gives_way_to_a_clock_and_nothing_moving_is_left():
    bar, text = shown(terminal=True)
    with bar:
        bar.start(2_000_000, "downloading")
        bar.advance(1_000_000)
        bar.start(4_000_000)
        bar.advance(4_000_000)
        bar.job("job", "Training", 3.0)
        bar.note("said meanwhile")
        bar.job("job", "Training", 4.0)
        bar.start(0)
        bar.start(10, "reading")
    written = text.getvalue()
    for part in ("downloading", "1.0/2.0 MB", "uploading", "job: Training", "said meanwhile"):
        assert part in written
    # The cursor is shown again as often as it was hidden.
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") > 0


def test_elsewhere_a_long_upload_has_a_line_every_half_minute():
    bar, text = shown(0.0, 10.0, 30.0, 45.0, 3661.0, 5000.0, 5000.0)
    with bar:
        bar.start(400_000_000_000)
        for size_bytes in (1_000_000_000, 2_000_000_000, 1_000_000_000, 96_000_000_000):
            bar.advance(size_bytes)
        bar.start(10, "hashing")
        bar.advance(10)
    assert text.getvalue() == (
        "uploading: 3.0 GB of 400.0 GB, 100.0 MB/s, 1:06:10 left\n"
        "uploading: 100.0 GB of 400.0 GB, 27.3 MB/s, 3:03:03 left\n"
    )


def test_a_download_that_begins_again_has_no_rate():
    bar, text = shown(0.0, 31.0, 62.0)
    with bar:
        bar.start(1_000_000, "downloading")
        bar.advance(500_000)
        bar.advance(-500_000)
    assert text.getvalue().splitlines()[1] == "downloading: 0 bytes of 1.0 MB, 0 bytes/s"
