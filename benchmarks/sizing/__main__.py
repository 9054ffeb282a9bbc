"""Fits the constants, says how far they hold, and writes what follows from that.

`--write` writes `slipway/facts/sizing.json`, `held_out.json` beside this file and the tables of
docs/sizing.md. Other rows, in the same columns, are only compared:

    python -m benchmarks.sizing [--write] [OTHER_ROWS.csv ...]
"""

import argparse
import sys
from pathlib import Path

from benchmarks.sizing.fit import fit, predicted_seconds
from benchmarks.sizing.report import report, sizing_facts, summary_lines, write_results
from benchmarks.sizing.rows import read_rows
from benchmarks.sizing.validation import Prediction
from slipway.sizing.facts import constants


def main() -> None:
    parser = argparse.ArgumentParser("benchmarks.sizing", description="Fits and compares.")
    parser.add_argument("--write", action="store_true", help="write facts, results and the page")
    parser.add_argument("rows", nargs="*", type=Path, help="CSV files with other rows to compare")
    given = parser.parse_args()
    if given.rows:
        others = read_rows(tuple(given.rows))
        found = [Prediction(row, predicted_seconds(row, constants())) for row in others]
        sys.stdout.write(summary_lines(found))
        return
    rows = read_rows()
    fitted = fit(rows)
    results = report(rows, fitted)
    if given.write:
        sizing_facts(rows, fitted, results)
        write_results(results)
    sys.stdout.write(f"{results['summary']}\n")


if __name__ == "__main__":
    main()
