"""Sums the reports of one ctest run into the line "N passed, N failed".

Each ctest entry counts as the single cases of its own GoogleTest or pytest report, or as one case
if it wrote none. An entry that failed without a failed case (a crash, a time-out, a leak found at
exit) adds one failure, so that a failed run can never count as clean.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other):
        return Count(*(a + b for a, b in zip(self, other)))


def count_report(path):
    """Counts the cases of a GoogleTest or pytest report; None if there is no readable one."""
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None  # Killed while writing, or a test that writes no report.
    count = Count()
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            count = count.plus(Count(failed=1))
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            count = count.plus(Count(skipped=1))
        else:
            count = count.plus(Count(passed=1))
    return count


def count_entry(entry, reports):
    """Counts one <testcase> of ctest's own report, by its detailed report where there is one."""
    status = entry.get("status")
    if status in ("disabled", "notrun") and entry.find("failure") is None:
        return Count(skipped=1)
    failed = status != "run"
    count = count_report(reports / (entry.get("name") + ".xml"))
    if count is None:
        return Count(failed=1) if failed else Count(passed=1)
    if failed and count.failed == 0:
        count = count.plus(Count(failed=1))
    return count


def main(reports):
    try:
        entries = ElementTree.parse(reports / "ctest.xml").getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as problem:
        print(f"ctest wrote no report: {problem}", file=sys.stderr)
        entries = []
    total = Count()
    for entry in entries:
        total = total.plus(count_entry(entry, reports))
    if total.skipped:
        print(f"{total.skipped} skipped")
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
