"""The command line of a chaos run, and its report."""

import argparse
import contextlib
import json
import pathlib
import random
import shutil
import tempfile
import time

from cluster import downing_flags, refusal
from daemons import BIN
from driver import EXIT_BROKE, EXIT_CANNOT, EXIT_HELD, RATE, ROUND_SECONDS, CannotRun, Run
from faults import KINDS

ABOUT = """Starts shardbusd nodes, a worker beside each, and processes of senders; injects faults
from a seed; checks that nothing acknowledged is lost, nothing is handled twice or out of order,
no two owners are at work at once, each ask ends once, and all shards answer again after each
round."""


def epilog():
    faults = "\n".join(f"  {kind:10} {about}{' (needs namespaces)' if needs else ''}"
                       for kind, (about, needs) in KINDS.items())
    return f"""faults:
{faults}

Every third round is planned (rolling): in it nothing may be lost, repeated or reordered. Where
network namespaces are not permitted the report says so, and the other faults go on.

exit codes:
  0   all promises held
  1   one broke, or a process ended by itself; printed are the folder with all logs and the
      command that repeats that round
  2   wrong usage
  77  cannot run here; the reason is printed"""


def kinds_of(text):
    kinds = text.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"unknown fault {kind!r}; known: {', '.join(KINDS)}")
    return kinds


def above_zero(number):
    def parsed(text):
        value = number(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return parsed


def parse():
    parser = argparse.ArgumentParser(prog="tests/chaos/run", description=ABOUT, epilog=epilog(),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=above_zero(float), default=2)
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--nodes", type=int, default=3, choices=(3, 4, 5))
    parser.add_argument("--faults", type=kinds_of, default=list(KINDS), metavar="KIND,KIND,...",
                        help="which ones; default: all")
    parser.add_argument("--downing", help="policy that the nodes get as --downing")
    parser.add_argument("--first-round", type=int, default=1, metavar="N",
                        help="start with the faults of this round")
    parser.add_argument("--rounds", type=above_zero(int), metavar="N",
                        help="so many, instead of --minutes")
    parser.add_argument("--round-seconds", type=above_zero(float), default=ROUND_SECONDS,
                        help="seconds of faults in a round")
    parser.add_argument("--rate", type=above_zero(float), default=RATE,
                        help="messages a second of each of the six senders (default %(default)s)")
    parser.add_argument("--no-namespaces", action="store_true",
                        help="all nodes on loopback, without the faults that need namespaces")
    parser.add_argument("--json", action="store_true", help="print the report as JSON on stdout")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a run that held, too")
    options = parser.parse_args()
    wrong = options.downing and refusal(downing_flags(options.downing, options.nodes))
    if wrong:
        parser.error(wrong)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1, 1 << 31)
    return options


def repeat_command(options, number):
    command = (f"tests/chaos/run --seed {options.seed} --nodes {options.nodes} "
               f"--faults {','.join(options.faults)} --round-seconds {options.round_seconds:g} "
               f"--rate {options.rate:g} --first-round {number} --rounds 1 --keep")
    command += " --no-namespaces" if options.no_namespaces else ""
    return command + (f" --downing {options.downing}" if options.downing else "")


def rounds(run):
    """Runs rounds; stops at the first that broke."""
    options = run.options
    end = time.monotonic() + options.minutes * 60
    number = options.first_round
    while (number < options.first_round + options.rounds if options.rounds
           else time.monotonic() < end):
        if not run.round(number):
            return number
        number += 1
    return None


def report(run, broke_in):
    """Gives what --json prints."""
    options, counts = run.options, run.totals.counts
    overlaps = sorted(round(one.ms, 1) for one in run.totals.overlaps)
    return {
        "held": broke_in is None, "seed": options.seed, "nodes": options.nodes,
        "faults": run.kinds, "not_run": {} if run.network else {
            kind: run.no_network for kind in options.faults if KINDS[kind][1]},
        "rounds": run.rounds, "counts": dict(sorted(counts.items())),
        "overlaps": {"count": len(overlaps), "longest_ms": overlaps[-1] if overlaps else 0,
                     "documented": counts["overlaps_documented"],
                     "frozen": counts["overlaps_frozen"]},
        "broken": run.totals.broken,
        "repeat": repeat_command(options, broke_in) if broke_in else None}


def print_table(result):
    print(f"\n{'round':>5}  {'faults':44} {'whole s':>8} {'answer s':>8}  result")
    for one in result["rounds"]:
        what = "rolling restart" if one["planned"] else ", ".join(
            " ".join(fault.split()[:1]) for fault in one["faults"])
        print(f"{one['round']:5}  {what[:44]:44} {one.get('whole_s', '-'):>8} "
              f"{one.get('answered_s', '-'):>8}  {'BROKE' if one['broken'] else 'held'}")
    for name, count in result["counts"].items():
        print(f"{name:32} {count}")
    overlaps = result["overlaps"]
    print(f"{'two owners at once':32} {overlaps['count']}: {overlaps['documented']} in a partition "
          f"with a crash, {overlaps['frozen']} at a frozen process; longest "
          f"{overlaps['longest_ms']} ms")
    for kind, why in result["not_run"].items():
        print(f"not run: {kind}: {why}")
    for text in result["broken"]:
        print(f"BROKEN {text}")


def main():
    options = parse()
    if not (BIN / "shardbusd").exists():
        print(f"cannot run here: no {BIN / 'shardbusd'}; build it, or set SHARDBUS_BIN_DIR")
        return EXIT_CANNOT
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shardbus-chaos-"))
    with contextlib.ExitStack() as stack:
        try:
            run = Run(options, folder, stack)
        except CannotRun as why:
            shutil.rmtree(folder)
            print(f"cannot run here: {why}")
            return EXIT_CANNOT
        run.say(f"{options.nodes} nodes, seed {options.seed}, faults {','.join(run.kinds)}"
                + ("" if run.network else f"; no namespaces ({run.no_network})"))
        with run.ticking():
            broke_in = rounds(run)
    result = report(run, broke_in)
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print_table(result)
    if broke_in is None and not options.keep:
        shutil.rmtree(folder)
    else:
        run.say(f"logs: {folder}")
    if broke_in is not None:
        run.say(f"repeat it with: {result['repeat']}")
    return EXIT_HELD if broke_in is None else EXIT_BROKE
