"""What a publish shows while it works: moving on a terminal, lines elsewhere."""

import io

from rich.console import Console

from slipway.cli.publish import ProgressBar


def shown(*, terminal: bool) -> tuple[ProgressBar, io.StringIO]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=200, highlight=False)
    return ProgressBar(console), text


def test_elsewhere_a_job_has_a_line_for_each_change_and_bytes_have_none():
    bar, text = shown(terminal=False)
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
