"""Plants small faults in the code, one at a time, and reports which of them the tests notice.

    python -m tools.planted_faults record --size all -- -n 2
    python -m tools.planted_faults --seed 1
    python -m tools.planted_faults compare before.json after.json
    python -m tools.planted_faults coverage

A fault is a changed comparison, a changed constant, an omitted call or a negated condition. The
seed alone chooses the faults among the executable lines of PACKAGES. Two runs over the same sources
therefore plant the same faults, and their results can be compared before and after the tests
change. Everything happens in a copy of the project with a virtual environment of its own, in which
every process imports the copy. The checkout is only read.

`record` runs the tests once under coverage.py and stores which test executes which line. Lines that
a fixture executes for a module or a session count for every test that uses the fixture. Lines that
a process executes count for the test, or the fixture, that started it. Two things are unknown. One
is the owner of a process that an embedded AWS starts, because it inherits no variables. The other
is the lines of a killed process. The caches of `functools` are cleared before each test, so that a
test also executes lines whose result another test would have cached.

A line that runs when its module is imported belongs to no test. Its candidates are the tests that
execute a line which mentions the name that it defines, and the tests that execute the same file.
"""

PACKAGES = ("slipway", "stacks", "containers", "embedded_aws")
"""What users run."""


class PlantedFaultsError(Exception):
    """A problem that a user can solve; the message says which."""
