import contextlib
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
for folder in (HERE, HERE.parent / "support", HERE.parents[1] / "bindings/python"):
    sys.path.insert(0, str(folder))

import network as networks  # noqa: E402  (from the folders above)


@pytest.fixture(name="network")
def fixture_network():
    """A network in which single ways can be cut; skips where none can be had."""
    with contextlib.ExitStack() as stack:
        network, why = networks.open_network(stack)
        if network is None:
            pytest.skip(f"no network namespaces here: {why}")
        yield network
