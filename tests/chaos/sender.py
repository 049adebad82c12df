"""A process of senders: tells and asks with (sender, seq), and a line for what became of each.

Commands come on stdin, one a line, and each is answered by its own word on stdout:
`go ROUND` sends under new names, `via ADDRESS...` finishes and goes on through other nodes,
`drain` finishes. Lines `stat SENT ENDED ERRORS` come in between, every second.
A line of the log is a JSON array with the fields of history.Sent.
"""

import argparse
import json
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)

TIMEOUT = 8.0  # seconds that an ask has
WINDOW = 16  # asks of one sender at a time
BURSTS = 0.01  # of all turns
ENTITIES = 40
LEDGERS_EACH, COUNTERS_EACH = 8, 3


class Log:
    """The file of outcomes, and the sums for progress lines. Threads: safe from any."""

    def __init__(self, path):
        self._file = open(path, "a", encoding="utf-8")
        self._lock = threading.Lock()
        self.sent = self.ended = self.errors = 0

    def write(self, *fields, error=False):
        line = json.dumps(fields, separators=(",", ":"))
        with self._lock:
            self.ended += 1
            self.errors += error
            self._file.write(line + "\n")

    def flush(self):
        with self._lock:
            self._file.flush()


class Sender(threading.Thread):
    """One client with its own order of messages; every call of `go` makes it a new sender."""

    def __init__(self, name, options, log):
        super().__init__(name=name, daemon=True)
        self._options = options
        self._log = log
        self._random = random.Random(f"{options.seed}/{name}")
        self._changed = threading.Condition()
        self._allowed = self._sending = False
        self._bus = None
        self._round = ""
        self._seq = self._open = 0
        self._targets = []
        self._untold = set()  # entities that were told something since they were last asked

    # --- the main thread ---

    def connect(self, addresses):
        if self._bus:
            self._bus.close()
        self._bus = shardbus.Client(addresses, name=self.name, route=self._options.route)
        self._bus.link.wait_welcome(20)

    def go(self, number):
        """Sends: under a new name if there is a number, else as before `drain`, if it did then."""
        with self._changed:
            if number:
                self._round = f"{self.name}.{number}"
                self._seq = 0
                ledgers = self._random.sample(range(ENTITIES), LEDGERS_EACH)
                self._targets = [("ledger", f"e{one}") for one in ledgers] + [
                    ("counter", f"{self._round}.{one}") for one in range(COUNTERS_EACH)]
            self._allowed = bool(self._round)
            self._changed.notify_all()

    def drain(self):
        """Sends nothing new, asks each entity that was only told something, waits for all ends."""
        with self._changed:
            self._allowed = False
            self._changed.wait_for(lambda: not self._sending)
        for target in sorted(self._untold):
            self._send(target, tell=False)
        with self._changed:
            self._changed.wait_for(lambda: self._open == 0)

    def end_round(self):
        self._round = ""

    # --- its own thread ---

    def run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._allowed and self._open < WINDOW)
                self._sending = True
            self._some()
            with self._changed:
                self._sending = False
                self._changed.notify_all()
            time.sleep(self._random.expovariate(self._options.rate))  # the load is paced

    def _some(self):
        """One message, or now and then a queue of slow ones."""
        target = self._random.choice(self._targets)
        if self._random.random() < BURSTS:
            for _ in range(WINDOW):
                self._send(target, tell=False, busy=0.03)
        else:
            self._send(target, tell=self._random.random() < 0.4, busy=self._busy())

    def _epoch(self):
        """Counts the sessions lost so far: order and delivery are promised within one."""
        counters = self._bus.link.session.counters
        return counters["sessions_lost"] + counters["ways_lost"]

    def _send(self, target, tell, busy=0.0):
        kind, name = target
        self._seq += 1
        self._log.sent += 1
        entity = self._bus.entity(kind, name)
        value = {"amount": 1} if kind == "counter" else {"sender": self._round, "seq": self._seq,
                                                         "busy": busy}
        head = (self._round, kind, name, self._seq)
        epoch, begin = self._epoch(), time.monotonic_ns()
        (self._untold.add if tell else self._untold.discard)(target)
        try:
            if tell:
                entity.tell("add", value)
                self._log.write(*head, "tell", epoch, epoch, "sent", False, None, begin, begin)
                return
            future = entity.ask_future("add", value, timeout=TIMEOUT)
        except shardbus.ShardbusError as error:
            self._log.write(*head, "tell" if tell else "ask", epoch, epoch, type(error).__name__,
                            error.may_have_happened, None, begin, begin, error=True)
            return
        with self._changed:
            self._open += 1
        future.add_done_callback(lambda done: self._ended(done, head, epoch, begin))

    def _busy(self):
        return round(self._random.uniform(0.005, 0.03), 3) if self._random.random() < 0.1 else 0.0

    def _ended(self, done, head, epoch, begin):
        error = done.exception()
        outcome = type(error).__name__ if error else "reply"
        self._log.write(*head, "ask", epoch, self._epoch(), outcome,
                        bool(error and error.may_have_happened), None if error else done.result(),
                        begin, time.monotonic_ns(), error=bool(error))
        with self._changed:
            self._open -= 1
            self._changed.notify_all()


def say(line):
    """In one piece: `print` writes the end of the line by itself, and two threads speak here."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def report(log):
    while True:
        time.sleep(1)  # the pace of progress lines
        say(f"stat {log.sent} {log.ended} {log.errors}")


def serve(senders, log, addresses):
    for sender in senders:
        sender.connect(addresses)
        sender.start()
    say("ready")
    for line in sys.stdin:
        word, *rest = line.split()
        if word != "go":
            for sender in senders:
                sender.drain()
        for sender in senders:
            if word == "via":
                sender.connect(rest)
            elif word == "drain":
                sender.end_round()
            if word in ("go", "via"):
                sender.go(rest[0] if word == "go" else None)
        log.flush()
        say(word)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--nodes", required=True, nargs="+")
    parser.add_argument("--route", default="any")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=60, help="messages a second of each sender")
    parser.add_argument("--log", required=True)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    log = Log(options.log)
    senders = [Sender(f"{options.name}{number}", options, log)
               for number in range(1, options.threads + 1)]
    threading.Thread(target=report, args=(log,), daemon=True).start()
    serve(senders, log, options.nodes)


if __name__ == "__main__":
    main()
