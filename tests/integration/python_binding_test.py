"""The package bindings/python against real brokers: clients, workers, moves, restarts, deaths."""

import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from daemons import BIN, SOURCE, Daemon, ctl, environment, free_port, read_line
from raw_peer import wait_until

sys.path.insert(0, str(pathlib.Path(SOURCE) / "bindings/python"))
import shardbus  # noqa: E402  (from the source tree)


@shardbus.host("basket", shards=16)
class Basket:
    """One method for each way in which a message can end."""

    def __init__(self, ctx):
        self.ctx = ctx
        self.items = 0

    def add(self, amount):
        self.items += amount
        return self.items

    def get(self):
        return [self.items, self.ctx.node]

    def fail(self):
        raise ValueError("broken")

    def refuse(self):
        raise shardbus.Refusal(shardbus.InvalidArgument("not this"))

    def hang(self, reply: shardbus.ReplyPort):
        self.ctx.kept = reply  # nobody answers

    def pass_on(self, to, reply: shardbus.ReplyPort):
        self.ctx.entity("basket", to).tell("answer_for", {"address": reply.address})

    def answer_for(self, address):
        self.ctx.port(address).send(f"{self.ctx.id} answers")

    def save(self):
        return self.items

    def load(self, state):
        self.items = state


@pytest.fixture(name="node")
def fixture_node():
    with Daemon("--name", "first") as node:
        yield node.ready()


def wait_members(node, count):
    done = ctl("--timeout", "20s", "wait", "--members", str(count), node=node.address)
    assert done.returncode == 0, done.stderr


def test_a_client_and_a_worker_answer_in_every_way(node):
    with shardbus.Worker(node.address, [Basket]), shardbus.connect(node.address) as bus:
        basket = bus.entity("basket", "b1")
        assert basket.ask("add", {"amount": 2}) == 2
        for _ in range(100):
            basket.tell("add", {"amount": 1})
        assert basket.ask("get") == [102, "first"]
        assert basket.ask("pass_on", {"to": "b2"}) == "b2 answers"
        with pytest.raises(shardbus.HandlerFailed, match="broken"):
            basket.ask("fail")
        for wrong, error in (("fly", shardbus.NoSuchMethod), ("_call", shardbus.NoSuchMethod),
                             ("refuse", shardbus.InvalidArgument)):
            with pytest.raises(error):
                basket.ask(wrong)
        with pytest.raises(shardbus.DecodeFailed):
            basket.ask("add", {"wrong": 1})
        begin = time.monotonic()
        with pytest.raises(shardbus.Timeout):
            basket.ask("hang", timeout=1)
        assert 0.9 < time.monotonic() - begin < 20
        with pytest.raises(shardbus.NoSuchType):
            bus.entity("nobody-hosts-this", "x").ask("get")
        assert basket.ask("get") == [102, "first"]


def test_asyncio(node):
    async def use():
        async with await shardbus.connect_async(node.address) as bus:
            counters = [bus.entity("counter", f"async-{i}") for i in range(50)]
            for counter in counters:
                counter.tell("add", {"amount": 3})
            assert await asyncio.gather(*(counter.ask("get") for counter in counters)) == [3] * 50
            cancelled = asyncio.ensure_future(counters[0].ask("get"))
            cancelled.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cancelled
            assert await counters[1].ask("get") == 3
            with pytest.raises(shardbus.NoSuchMethod):
                await counters[1].ask("fly")

    asyncio.run(use())


def test_a_wrong_shard_count_is_rejected_and_says_both(node):
    @shardbus.host("basket", shards=32)
    class Other:
        def __init__(self, ctx):
            pass

    with shardbus.Worker(node.address, [Basket]):
        with pytest.raises(shardbus.ConfigMismatch, match="16.*32"):
            shardbus.Worker(node.address, [Other]).start()


def test_state_moves_to_the_worker_of_a_second_node(node):
    with shardbus.Worker(node.address, [Basket]), shardbus.connect(node.address) as bus:
        baskets = [bus.entity("basket", f"b{i}") for i in range(64)]
        for i, basket in enumerate(baskets):
            assert basket.ask("add", {"amount": i}) == i
        with Daemon("--name", "second", "--seeds", node.address) as second:
            second.ready()
            with shardbus.Worker(second.address, [Basket]):
                def moved():
                    found = [basket.ask("get") for basket in baskets]
                    assert [items for items, _ in found] == list(range(64))
                    return len({name for _, name in found}) == 2

                wait_until(moved, "both nodes have shards")
                # And back, when the second node leaves in order.
                second.send(signal.SIGTERM)
                assert second.wait() == 0, second.log()
                assert [basket.ask("get") for basket in baskets] == [[i, "first"]
                                                                     for i in range(64)]


def restart_one_by_one(addresses, bus):
    baskets = [bus.entity("basket", f"b{number}") for number in range(64)]
    workers = [shardbus.Worker(address, [Basket]).start() for address in addresses]
    try:
        for number, basket in enumerate(baskets):
            assert basket.ask("add", {"amount": number}) == number
        count = 0
        for _ in range(3):
            for place, address in enumerate(addresses):
                begin = time.monotonic()
                workers[place].stop()
                assert time.monotonic() - begin < 3, "it waited for nothing"
                workers[place] = shardbus.Worker(address, [Basket]).start()
                count += 1
                assert [basket.ask("add", {"amount": 1}) for basket in baskets] == [
                    number + count for number in range(64)]
    finally:
        for worker in workers:
            worker.stop()


def test_workers_of_one_node_restart_one_by_one_and_keep_every_count(node):
    with shardbus.connect(node.address) as bus:
        restart_one_by_one([node.address] * 2, bus)


def test_workers_of_two_nodes_restart_one_by_one_and_keep_every_count(node):
    with Daemon("--name", "second", "--seeds", node.address) as second:
        second.ready()
        wait_members(node, 2)
        with shardbus.connect(node.address) as bus:
            restart_one_by_one([node.address, second.address], bus)


def test_a_restart_of_the_broker_ends_asks_at_once_and_the_client_goes_on():
    address = f"tcp://127.0.0.1:{free_port()}"
    with Daemon("--name", "again", listen=address) as node:
        node.ready()
        bus = shardbus.connect(address)
        worker = shardbus.Worker(address, [Basket]).start()
        assert bus.entity("basket", "b").ask("add", {"amount": 1}) == 1
        hanging = bus.entity("basket", "b").ask_future("hang", timeout=60)
        bus.entity("basket", "b").ask("get")
    try:
        with Daemon("--name", "again", listen=address) as node:
            node.ready()
            begin = time.monotonic()
            # The session is found lost when something is sent, at the latest by the next PING.
            with contextlib.suppress(shardbus.ShardbusError):
                bus.entity("counter", "c").ask("get")
            with pytest.raises(shardbus.UnknownOutcome):
                hanging.result(10)
            assert time.monotonic() - begin < 5

            def hosted():
                with contextlib.suppress(shardbus.ShardbusError):
                    return bus.entity("basket", "b").ask("add", {"amount": 1}, timeout=2)

            # A new life: the worker dropped what it had for the broker of before.
            assert wait_until(hosted, "the worker is back") == 1
    finally:
        bus.close()
        worker.stop()


@contextlib.contextmanager
def worker_process(node):
    script = SOURCE / "examples/python_worker/worker.py"
    process = subprocess.Popen([sys.executable, script, "--node", node.address], text=True,
                               stdout=subprocess.PIPE, env=environment())
    try:
        assert read_line(process.stdout, "worker") == "ready"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_worker_killed_in_mid_message_is_replaced(node):
    with Daemon("--name", "second", "--seeds", node.address) as second:
        second.ready()
        wait_members(node, 2)
        with worker_process(node) as process, shardbus.connect(second.address) as bus:
            cart = bus.entity("cart", "cart-42")
            assert cart.ask("add", {"amount": 3}) == 3
            # It stands still with the message in its socket, and dies like that.
            os.kill(process.pid, signal.SIGSTOP)
            asks = [bus.entity("cart", f"cart-{i}").ask_future("get", timeout=60)
                    for i in range(20)]
            bus.entity("counter", "c").ask("get")
            process.kill()
            begin = time.monotonic()
            for ask in asks:
                with pytest.raises(shardbus.UnknownOutcome):
                    ask.result(10)
            assert time.monotonic() - begin < 3
            with worker_process(second):
                def answered():
                    with contextlib.suppress(shardbus.NoSuchType, shardbus.StaleOwner,
                                             shardbus.UnknownOutcome):
                        return cart.ask("add", {"amount": 1})

                assert wait_until(answered, "it answers elsewhere") == 1


def test_the_example_serves_and_ends_in_order(node):
    with worker_process(node) as process:
        done = ctl("ask", "cart", "cart-42", "add", '{"amount": 3}', node=node.address)
        assert done.returncode == 0 and "3" in done.stdout, done.stderr
        process.terminate()
        assert process.wait(20) == 0


SHOP = """
import shardbus
@shardbus.host('shop', shards=16)
class Shop:
    def __init__(self, ctx): self.sold = 0
    def sell(self):
        self.sold += 1
        return self.sold
    def save(self): return self.sold
    def load(self, state): self.sold = state
if __name__ == "__main__":
    import logging, sys
    logging.basicConfig(level=logging.INFO)
    shardbus.Worker([sys.argv[1]], [Shop]).run()
"""


def shop_command(form, node):
    if form == "command":
        return ["-m", "shardbus", "--connect", node.address, "worker", "shop:Shop"]
    return ["shop.py", node.address]


@contextlib.contextmanager
def shop_process(form, node, folder):
    (folder / "shop.py").write_text(SHOP)
    env = environment() | {"PYTHONPATH": str(SOURCE / "bindings/python")}
    process = subprocess.Popen([sys.executable, *shop_command(form, node)], cwd=folder, env=env,
                               text=True, stderr=subprocess.PIPE)
    try:
        assert "serving shop" in read_line(process.stderr, "worker")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("form", ["command", "run"])
def test_a_worker_that_a_signal_ends_leaves_its_state_behind(node, tmp_path, form, number):
    with shop_process(form, node, tmp_path) as first, shop_process(form, node, tmp_path), \
            shardbus.connect(node.address) as bus:
        shops = [bus.entity("shop", f"s{i}") for i in range(40)]
        assert [shop.ask("sell") for shop in shops] == [1] * 40
        first.send_signal(number)
        assert first.wait(20) == 0
        assert "Traceback" not in first.stderr.read()
        assert [shop.ask("sell") for shop in shops] == [2] * 40


def test_a_type_that_the_node_itself_hosts_is_refused_to_a_worker(node):
    @shardbus.host("counter", shards=256)
    class Mine:
        pass

    with pytest.raises(shardbus.ConfigMismatch, match="the node itself hosts the type counter"):
        shardbus.Worker(node.address, [Mine]).start()


def test_what_is_too_large_to_tell_is_refused_at_once(node):
    with shardbus.connect(node.address) as bus:
        with pytest.raises(shardbus.TooLarge):
            bus.entity("kv", "big").tell("set", b"x" * 2_000_000)


def test_threads_share_a_client(node):
    with shardbus.connect(node.address) as bus:
        def add():
            for _ in range(50):
                bus.entity("counter", "shared").ask("add", {"amount": 1})

        threads = [threading.Thread(target=add) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bus.entity("counter", "shared").ask("get") == 400
