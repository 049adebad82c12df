"""A shopping cart in Python, hosted for a cluster of C++ brokers.

    worker.py --node tcp://127.0.0.1:7400 [--node ...]

With several nodes the worker serves the first that answers, and the next one if that dies. Prints
"ready" once it serves, and ends in order on SIGTERM or Ctrl-C. Then, from anywhere in the cluster:

    shardbusctl ask cart cart-42 add '{"amount": 3}'
"""

import argparse
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python"))

import shardbus  # noqa: E402  (from the source tree, so that nothing has to be installed)


@shardbus.host("cart")
class Cart:
    """Counts the articles of one cart; one object per cart."""

    def __init__(self, context):
        self.context = context
        self.total = 0

    def add(self, amount):
        self.total += amount
        return self.total

    def get(self):
        return self.total

    # Together these keep the cart when it moves to another node.
    def save(self):
        return self.total

    def load(self, total):
        self.total = total


def main():
    parser = argparse.ArgumentParser(description="Hosts the entity type cart.")
    parser.add_argument("--node", action="append", default=[],
                        help="listen address of a node; repeatable")
    parser.add_argument("--cluster", default="", help="name of the cluster; default: any")
    arguments = parser.parse_args()
    # Before the worker starts its threads, so that the signals come to sigwait() below.
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    nodes = arguments.node or ["tcp://127.0.0.1:7400"]
    with shardbus.Worker(nodes, [Cart], cluster=arguments.cluster, name="cart-worker"):
        print("ready", flush=True)
        signal.sigwait(stop)


if __name__ == "__main__":
    main()
