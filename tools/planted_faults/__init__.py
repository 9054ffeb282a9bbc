"""Plants small faults in the code, one at a time, and says which of them the tests notice.

    python -m tools.planted_faults record --size all -- -n 2
    python -m tools.planted_faults --seed 1
    python -m tools.planted_faults compare before.json after.json
    python -m tools.planted_faults coverage

A fault is a comparison turned, a constant moved, a call left out or a condition negated. The seed
alone chooses the faults among the executable lines of PACKAGES, so that two runs over the same
sources plant the same ones, and what the tests notice can be compared before and after the tests
change. Everything happens in a copy of the project with a virtual environment of its own, in which
every process imports the copy. The checkout is only read.

`record` runs the tests once under coverage.py and keeps which test executes which line. What a
fixture executes for a module or a session counts for every test that uses the fixture. What a
process executes counts for the test, or the fixture, that started it. Not known is whose a
process is that an embedded AWS starts, because it inherits no variables, and what a killed process
executed. The caches of `functools` are cleared before each test, so that a test counts as executing
what another test would have computed for it.

A line that runs when its module is imported belongs to no test. Its candidates are the tests that
execute a line which mentions the name that it defines, and those that execute the same file.
"""

PACKAGES = ("slipway", "stacks", "containers", "embedded_aws")
"""What users run."""


class PlantedFaultsError(Exception):
    """Something that a user can change; the message says what."""
