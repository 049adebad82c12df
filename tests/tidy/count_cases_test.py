"""Tests of tests/support/count_cases.py: a wrong count would let a broken run look clean."""

import sys

from common import ROOT

sys.path.insert(0, str(ROOT / "tests/support"))
import count_cases  # noqa: E402  (found only after the line above)


def count(folder, entries, reports, capsys):
    """Writes ctest's report with `entries` {name: status} and each test's cases; runs the count."""
    rows = "".join(f'<testcase name="{name}" status="{status}">'
                   f'{"<failure/>" if status == "fail" else ""}</testcase>'
                   for name, status in entries.items())
    (folder / "ctest.xml").write_text(f"<testsuite>{rows}</testsuite>")
    for name, cases in reports.items():
        (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite>"
                                            "</testsuites>")
    code = count_cases.main(folder)
    return code, capsys.readouterr().out.splitlines()[-1]


def test_sums_single_cases(tmp_path, capsys):
    cases = '<testcase status="run"/><testcase status="run"/><testcase><skipped/></testcase>'
    assert count(tmp_path, {"a": "run", "b": "run"}, {"a": cases}, capsys) == (
        0, "3 passed, 0 failed")


def test_counts_failures(tmp_path, capsys):
    cases = "<testcase/><testcase><failure/></testcase><testcase><error/></testcase>"
    assert count(tmp_path, {"a": "fail"}, {"a": cases}, capsys) == (1, "1 passed, 2 failed")


def test_a_crash_without_report_fails(tmp_path, capsys):
    assert count(tmp_path, {"a": "fail"}, {}, capsys) == (1, "0 passed, 1 failed")


def test_a_failure_after_the_last_case_fails(tmp_path, capsys):
    assert count(tmp_path, {"a": "fail"}, {"a": "<testcase/>"}, capsys) == (
        1, "1 passed, 1 failed")


def test_nothing_run_is_not_a_success(tmp_path, capsys):
    assert count(tmp_path, {}, {}, capsys) == (1, "0 passed, 0 failed")


def test_no_report_of_ctest_is_not_a_success(tmp_path, capsys):
    assert count_cases.main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 0 failed"
