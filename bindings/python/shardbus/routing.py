"""What nodes say about the owners of shards, as values; and a client's fence (PROTOCOL.md 6.3)."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .wire import (ADDRESS_BYTES, SHARD_COUNT, Kind, Malformed, as_generation, as_int, as_list,
                   as_node, as_shard_count, as_text, as_type, envelope)


class Entry(NamedTuple):
    """Who owns a shard. Generations only grow; the higher one holds, whichever came last."""

    owner: Optional[int] = None  # node key; None: nobody
    generation: Optional[tuple] = None  # None: nothing is known

    def is_older(self, generation: Optional[tuple]) -> bool:
        if self.generation is None or generation is None:
            return generation is not None
        return self.generation < generation

    def gives_way(self, new: Entry, table: Table) -> bool:
        """Whether a row of the table replaces this.

        A next owner answers fences before the shard is its own. If it dies, and with it the
        coordinator that knew of the move, the old owner goes on under its older generation.
        """
        if self.generation is None or self.is_older(new.generation):
            return self.is_older(new.generation)
        died = self.owner is not None and self.owner not in table.fronts
        return died and new.owner is not None and self.generation[0] < table.term


class Table(NamedTuple):
    term: int
    fronts: dict  # node key -> address
    types: dict  # name -> one Entry per shard


class Moved(NamedTuple):
    type: str
    shard: int
    entry: Entry
    front: str


class FenceAnswer(NamedTuple):
    type: str
    shard: int
    id: int
    generation: Optional[tuple]
    node: Optional[int]


def as_key(value: Any) -> Optional[int]:
    return None if value is None else as_int(value)


def table_version(body: list) -> tuple:
    """Reads no more than whether the rest is worth reading: a table may be long."""
    term, key, number = as_list(as_list(body, 4)[1], 3)[:3]
    return as_int(term), as_key(key) or 0, as_int(number)


def table_nodes(body: list) -> set:
    """The keys of the nodes in it, without reading the rest."""
    return {as_node(node).key for node in as_list(as_list(body, 4)[0], 0)}


def parse_table(body: list) -> Table:
    nodes, _, keys, types = as_list(body, 4)[:4]
    known = [as_node(node) for node in as_list(nodes, 0)]
    listed = [as_int(key) for key in as_list(keys, 0)]
    table = Table(table_version(body)[0], {node.key: node.front for node in known}, {})
    for row in as_list(types, 0):
        name, count, entries = as_list(row, 3)[:3]
        shards = as_shard_count(count)
        table.types[as_type(name)] = [_entry(item, listed)
                                      for item in as_list(entries, shards)[:shards]]
    return table


def _entry(value: Any, keys: list) -> Entry:
    if value is None:
        return Entry()
    owner, term, claimant, counter = as_list(value, 4)[:4]

    def key_of(index: Any) -> Optional[int]:
        if index is None:
            return None
        if as_int(index) >= len(keys):
            raise Malformed("an index behind the keys")
        return keys[int(index)]

    return Entry(key_of(owner), as_generation([term, key_of(claimant) or 0, counter]))


def _shard(value: Any) -> int:
    return as_int(value, SHARD_COUNT - 1)


def parse_moved(body: list) -> Moved:
    name, shard, owner, generation, front, slot = as_list(body, 6)[:6]
    as_int(slot)
    return Moved(as_type(name), _shard(shard), Entry(as_key(owner), as_generation(generation)),
                 as_text(front, ADDRESS_BYTES))


def parse_fence_answer(body: list) -> FenceAnswer:
    name, shard, number, sender, generation, node = as_list(body, 6)[:6]
    as_int(sender)
    return FenceAnswer(as_type(name), _shard(shard), as_int(number), as_generation(generation),
                       as_key(node))


def fence(type_name: str, shard: int, number: int, sender: int, entry: Entry) -> bytes:
    return envelope(Kind.FENCE, type_name, shard, number, sender, entry.generation, entry.owner,
                    None)
