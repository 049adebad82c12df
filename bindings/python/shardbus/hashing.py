"""Which shard an entity id belongs to, and which key a node has (PROTOCOL.md sections 3 and 7)."""

_MASK64 = (1 << 64) - 1
_MASK53 = (1 << 53) - 1


def fnv1a64(data: bytes, seed: int = 0xCBF29CE484222325) -> int:
    value = seed
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & _MASK64
    return value


def hash_tag(entity_id: bytes) -> bytes:
    """Gives what stands in the first non-empty `{...}`, else the whole id."""
    start = entity_id.find(b"{")
    end = entity_id.find(b"}", start + 1) if start >= 0 else -1
    return entity_id[start + 1:end] if end > start + 1 else entity_id


def shard_of(entity_id: bytes, shard_count: int) -> int:
    return fnv1a64(hash_tag(entity_id)) % shard_count


def node_key(name: str, incarnation: int) -> int:
    tail = b"\0" + incarnation.to_bytes(8, "little")
    return (fnv1a64(tail, fnv1a64(name.encode())) & _MASK53) or 1
