"""Tests of the checks themselves: a check that finds nothing looks just like a clean project."""

import check_errors
import check_layers
import check_peers
import pytest
from common import ROOT, blank_out
from cpp_functions import functions


def lengths(text):
    return {function.name: function.lines for function in functions(text)}


def test_function_forms():
    text = """
namespace shardbus::wire {
template <class T, typename U = std::vector<T>>
void plain(T value) {
  if (value) { act(); }
}
class Thing : public Base {
 public:
  Thing(int a, int b) : a_{a}, b_(b), c_{1, 2} {
    act();
  }
  explicit operator bool() const noexcept { return true; }
  friend bool operator==(const Thing&, const Thing&) = default;
 private:
  std::array<int, 2> c_ = {1, 2};
};
constexpr int kTable[] = {1, 2};
auto trailing(int a)
    -> std::vector<int> {
  return {a};
}
enum class Kind : int { one, two };
TEST(Suite, Case) {
  auto f = [] { return "{"; };
}
}  // namespace shardbus::wire
"""
    assert lengths(text) == {"plain": 4, "Thing": 3, "operator bool": 1, "trailing": 4, "TEST": 3}


def test_literals_hide_braces():
    text = 'int f() {\n  auto a = R"x({{{)x"; char b = \'{\'; int c = 1\'000;  // {\n}\n'
    assert lengths(text) == {"f": 3}


def test_blank_out_keeps_lines():
    text = "a /* x\n y */ b // c\nd"
    assert blank_out(text).split("\n") == ["a     ", "      b     ", "d"]


@pytest.mark.parametrize("owner, header, quoted, fine", [
    ("wire", "base/hash.hpp", True, True),
    ("base", "wire/codec.hpp", True, False),
    ("base", "shardbus/status.hpp", True, True),
    ("core/region", "core/region/region.hpp", True, True),
    ("core/region", "core/shard/shard.hpp", True, False),
    ("core/region", "wire/codec.hpp", True, False),
    ("runtime", "core/region/region.hpp", True, True),
    ("client", "core/delivery/credit.hpp", True, True),
    ("client", "core/region/region.hpp", True, False),
    ("transport", "zmq.hpp", False, True),
    ("runtime", "zmq.hpp", False, False),
    ("base", "vector", False, True),
    ("base", "lost.hpp", True, False),
])
def test_layers(owner, header, quoted, fine):
    path = ROOT / "lib" / owner / "x.cpp"
    problem = check_layers.check_include(check_layers.read_table(), owner, path, header, quoted)
    assert (problem is None) == fine, problem


@pytest.mark.parametrize("line", [
    "std::mutex m;", "auto t = std::chrono::steady_clock::now();",
    "std::unordered_map<int, int> m;",
    "std::random_device d;", 'getenv("X");', "std::ifstream in;", "std::thread t;"])
def test_impure_cores(line):
    forbidden = check_layers.read_table()["core_forbidden"]
    assert list(check_layers.check_purity(forbidden, ROOT / "lib/core/x/x.cpp", line))


def test_pure_cores():
    forbidden = check_layers.read_table()["core_forbidden"]
    text = "std::map<int, Lock> locks; opened(file); region.reopen (x); shard_clock(now);"
    assert not list(check_layers.check_purity(forbidden, ROOT / "lib/core/x/x.cpp", text))


def test_error_rows_survive_formats():
    table = list(check_errors.rows())
    assert table and not list(check_errors.check_registry(table))
    for style in check_errors.FORMATS:
        assert check_errors.generate(table, style).count("\n") == len(table)


@pytest.mark.parametrize("cells, problem", [
    (["x", "ours", "`integration/peers_test.py::test_a_shard_moves_there_and_back`"], None),
    (["x", "ours", "`sim/sim_test.cpp::Seeds.Hold`, `mark ack_repeated`"], None),
    (["x", "ours", "`golden/control/pause.txt`"], None),
    (["x", "waits 1", ""], None),
    (["x", "not ours", "it is done by `min_members`"], None),
    (["x", "not ours", ""], "no reason"),
    (["x", "ours", "the tests of `min_members`"], "names no test"),
    (["", "waits 4", ""], "says no behaviour"),
    (["x", "someday", ""], "is no kind"),
    (["x", "waits 9", ""], "is no kind"),
    (["x", "waits 1"], "3 cells"),
    (["x", "waits 1", "`golden/control/lost.txt`"], "no such file"),
    (["x", "ours", "`integration/peers_test.py`"], "no such test"),
    (["x", "ours", "`integration/peers_test.py::test_a_shard`"], "no such test"),
    (["x", "ours", "`sim/sim_test.cpp::Seeds.Hol`"], "no such test"),
    (["x", "ours", "`golden/control/pause.txt::Seeds.Hold`"], "no such test"),
    (["x", "ours", "`mark lost`"], "is no mark")])
def test_rows_of_peers(cells, problem):
    found = list(check_peers.check_row("P1", cells))
    assert len(found) == (problem is not None), found
    assert problem is None or problem in found[0]


def test_numbers_of_peers():
    rows = "".join(f"| {number} | x | waits 1 | |\n" for number in check_peers.wanted())
    assert not list(check_peers.check(rows))
    assert list(check_peers.check(rows + "| P1 | x | waits 1 | |\n")) == [
        "P1: has 2 rows instead of 1"]
    assert list(check_peers.check(rows + "| P70 | x | waits 1 | |\n")) == [
        "P70: is no number of the table"]
    assert list(check_peers.check(rows.replace("| MV46 |", "| MV |"))) == [
        "MV46: has 0 rows instead of 1"]
