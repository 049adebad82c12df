"""Envelopes to bytes and back (PROTOCOL.md sections 2, 3 and 6)."""

from __future__ import annotations

import enum
from typing import Any, Iterator, NamedTuple, Optional, Union

import msgpack

MAX_INTEGER = (1 << 53) - 1
FLAG_GREETED = 1
FRAME_BYTES = 1 << 20
PAYLOAD_BYTES = FRAME_BYTES - 4096
ID_BYTES = 256
TYPE_BYTES = 64
METHOD_BYTES = 128
CORRELATION_BYTES = 40
HEADERS_BYTES = 8192
TEXT_BYTES = 1024
ADDRESS_BYTES = 256
TIME_LEFT_MS = 86_400_000
SHARD_COUNT = 65536
DEPTH = 32


class Kind(enum.IntEnum):
    TELL = 1
    ASK = 2
    REPLY = 3
    ERROR = 4
    HELLO = 10
    WELCOME = 11
    REJECT = 12
    NO_SESSION = 13
    GOODBYE = 14
    PING = 15
    PONG = 16
    CREDIT = 17
    LINK = 18
    WHO = 19
    HERE = 20
    MOVED = 30
    TABLE = 31
    FENCE = 32
    FENCE_OK = 33
    PATH_LOST = 34
    STREAM_START = 40
    STREAM_STATE = 41
    STREAM_MESSAGE = 42
    STREAM_FENCE = 43
    STREAM_END = 44
    STREAM_ACK = 45
    BEGIN = 50
    PREPARE = 51
    FREEZE = 52
    REHOME = 53
    ANSWER = 54
    REPORT_REQUEST = 55
    REPORT = 56
    JOIN = 57
    JOIN_REFUSED = 58
    TABLE_PULL = 59
    TABLE_PART = 60
    DOWN = 61
    DIGEST = 62
    TABLE_DELTA = 63
    RESTORE = 70
    RELEASE = 71
    RELEASED = 72
    OFFER = 73


COUNTED = frozenset({Kind.TELL, Kind.ASK, Kind.REPLY, Kind.ERROR})

# nil, an integer, str or bin of the asker's choice, or a reply port [node key, slot].
Correlation = Union[None, int, str, bytes, list]


class Envelope(NamedTuple):
    kind: Kind
    flags: int
    correlation: Correlation
    body: list
    size: int  # bytes on the wire, for credit
    value: Any = None  # what parse() made of the body


class Bad(NamedTuple):
    """An envelope that cannot be served; `error` is the name of the answer that it gets."""

    error: str
    correlation: Correlation


class Malformed(ValueError):
    """The bytes are not a valid envelope."""

    error = "malformed"


class TooLarge(ValueError):
    """A field is over its limit."""

    error = "too_large"


# --- reading values ---


def as_int(value: Any, most: int = MAX_INTEGER) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Malformed(f"no integer of 0..{most}")
    return value


def as_bytes(value: Any, most: int) -> bytes:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise Malformed("no bytes")
    if len(value) > most:
        raise TooLarge(f"more than {most} bytes")
    return value


def as_text(value: Any, most: int) -> str:
    try:
        return as_bytes(value, most).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None


def as_list(value: Any, least: int) -> list:
    if not isinstance(value, list) or len(value) < least:
        raise Malformed(f"no array of at least {least}")
    return value


def as_map(value: Any) -> dict:
    if not isinstance(value, dict):
        raise Malformed("no map")
    return value


def as_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Malformed("no bool")
    return value


def as_generation(value: Any) -> Optional[tuple]:
    if value is None:
        return None
    term, claimant, counter = (as_int(part) for part in as_list(value, 3)[:3])
    if term == 0:
        raise Malformed("a generation of term 0")
    return term, claimant, counter


def as_type(value: Any) -> str:
    name = as_text(value, TYPE_BYTES)
    if not name:
        raise Malformed("a type without a name")
    return name


def as_shard_count(value: Any) -> int:
    count = as_int(value)
    if count > SHARD_COUNT:
        raise TooLarge(f"more than {SHARD_COUNT} shards")
    if count == 0:
        raise Malformed("no shards")
    return count


def as_correlation(value: Any) -> Correlation:
    if isinstance(value, list):
        node, slot = (as_int(part) for part in as_list(value, 2)[:2])
        if node == 0:
            raise Malformed("a reply port of nobody")
        return [node, slot]
    if isinstance(value, (bool, float)) or not isinstance(value, (type(None), int, str, bytes)):
        raise Malformed("no correlation")
    if isinstance(value, (str, bytes)) and len(pack(value)) > CORRELATION_BYTES:
        raise TooLarge(f"correlation of more than {CORRELATION_BYTES} bytes")
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH + 1):
        inner: list = []
        for item in level:
            if isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, dict):
                inner.extend(item.keys())
                inner.extend(item.values())
        if not inner and not any(isinstance(item, (list, dict)) for item in level):
            return
        level = inner
    raise Malformed(f"deeper than {DEPTH}")


# --- frames ---


def _unpacker(frame: bytes) -> msgpack.Unpacker:
    unpacker = msgpack.Unpacker(
        raw=False, unicode_errors="surrogateescape", strict_map_key=False, use_list=True,
        max_buffer_size=max(len(frame), 1))
    unpacker.feed(frame)
    return unpacker


def read_frame(frame: bytes) -> Iterator[Union[Envelope, Bad]]:
    """Yields each envelope of a frame; a malformed one is the last."""
    unpacker = _unpacker(frame)
    start = 0
    while start < len(frame):
        try:
            value = unpacker.unpack()
            end = unpacker.tell()
            item = _envelope(value, end - start)
        except Exception:  # msgpack raises its own, ValueError, TypeError, RecursionError ...
            item, end = Bad("malformed", None), len(frame)
        yield item
        if isinstance(item, Bad) and item.error == "malformed":
            return
        start = end


def _envelope(value: Any, size: int) -> Union[Envelope, Bad]:
    prefix = as_list(value, 3)
    _check_depth(value)
    kind = as_int(prefix[0])
    flags = as_int(prefix[1], (1 << 32) - 1)
    try:
        correlation = as_correlation(prefix[2])
    except TooLarge:
        return Bad("too_large", None)
    try:
        envelope = Envelope(Kind(kind), flags, correlation, value[3:], size)
    except ValueError:
        return Bad("unknown_kind", correlation)
    try:
        return envelope._replace(value=parse(envelope))
    except (TooLarge, Malformed) as failure:
        return Bad(failure.error, correlation)


# --- what clients and workers receive ---


class Message(NamedTuple):
    kind: Kind
    correlation: Correlation
    type: str
    id: bytes
    method: str
    time_left_ms: int
    headers: Optional[dict]
    payload: bytes


class Reply(NamedTuple):
    correlation: Correlation
    code: int
    text: str
    payload: bytes


class NodeInfo(NamedTuple):
    name: str
    key: int
    front: str


class Welcome(NamedTuple):
    session: int
    node: NodeInfo
    cluster: str
    credit: tuple
    frame_bytes: int
    batch: int
    payload_bytes: int
    ping_ms: int
    worker_lease_ms: int


class Refusal(NamedTuple):
    code: int
    text: str
    retry_after_ms: int


class Restore(NamedTuple):
    type: str
    id: bytes
    state: bytes


class Release(NamedTuple):
    type: str
    shard: int
    shard_count: int


def _headers(value: Any) -> Optional[dict]:
    if value is None:
        return None
    if len(pack(as_map(value))) > HEADERS_BYTES:
        raise TooLarge(f"headers of more than {HEADERS_BYTES} bytes")
    return value


def _time_left(value: Any) -> int:
    if as_int(value) > TIME_LEFT_MS:
        raise TooLarge("more than a day left")
    return as_int(value)


def parse_message(envelope: Envelope) -> Message:
    defaults = [None, None, 0, 0, None, None]
    body = as_list(envelope.body, 3)
    rest = body[3:9] + defaults[max(0, len(body) - 3):]
    as_generation(rest[0])
    as_generation(rest[1])
    as_int(rest[3], 255)
    payload = b"" if rest[5] is None else as_bytes(rest[5], PAYLOAD_BYTES)
    return Message(envelope.kind, envelope.correlation, as_type(body[0]),
                   as_bytes(body[1], ID_BYTES), as_text(body[2], METHOD_BYTES),
                   _time_left(rest[2]), _headers(rest[4]), payload)


def parse_reply(envelope: Envelope) -> Reply:
    body = envelope.body
    if envelope.kind == Kind.ERROR:
        code = as_int(as_list(body, 1)[0], (1 << 16) - 1)
        if code == 0:
            raise Malformed("an error without a code")
        text = as_text(body[1], TEXT_BYTES) if len(body) > 1 else ""
        return Reply(envelope.correlation, code, text, b"")
    empty = not body or body[0] is None
    return Reply(envelope.correlation, 0, "",
                 b"" if empty else as_bytes(body[0], PAYLOAD_BYTES))


def as_node(value: Any) -> NodeInfo:
    name, incarnation, key, front, peer, gossip = as_list(value, 6)[:6]
    for address in (front, peer, gossip):
        as_text(address, ADDRESS_BYTES)
    as_int(incarnation)
    return NodeInfo(as_text(name, TYPE_BYTES), as_int(key), as_text(front, ADDRESS_BYTES))


def _credit(value: Any) -> tuple:
    envelopes, size = as_list(value, 2)[:2]
    return as_int(envelopes), as_int(size)


def _required(fields: dict, key: str) -> Any:
    if key not in fields:
        raise Malformed(f"no {key}")
    return fields[key]


def parse_welcome(envelope: Envelope) -> Welcome:
    fields = as_map(as_list(envelope.body, 1)[0])
    limits = as_map(fields.get("limits", {}))

    def limit(key: str, default: int) -> int:
        return as_int(limits.get(key, default)) or _refuse_zero()

    return Welcome(
        as_int(_required(fields, "session")), as_node(_required(fields, "node")),
        as_text(fields.get("cluster", ""), TYPE_BYTES), _credit(_required(fields, "credit")),
        limit("frame_bytes", FRAME_BYTES), limit("batch", 1024),
        limit("payload_bytes", PAYLOAD_BYTES), as_int(fields.get("ping_ms", 0)),
        as_int(fields.get("worker_lease_ms", 0)))


def _refuse_zero() -> int:
    raise Malformed("a limit of zero")


def parse_refusal(envelope: Envelope) -> Refusal:
    fields = as_map(as_list(envelope.body, 1)[0])
    code = as_int(_required(fields, "code"), (1 << 16) - 1)
    if code == 0:
        raise Malformed("code 0")
    return Refusal(code, as_text(fields.get("text", ""), TEXT_BYTES),
                   as_int(fields.get("retry_after_ms", 0)))


def parse_credit(envelope: Envelope) -> tuple:
    return _credit(envelope.body)


def parse_restore(envelope: Envelope) -> Restore:
    name, entity_id, state = as_list(envelope.body, 3)[:3]
    return Restore(as_type(name), as_bytes(entity_id, ID_BYTES), as_bytes(state, PAYLOAD_BYTES))


def parse_release(envelope: Envelope) -> Release:
    name, shard, shard_count = as_list(envelope.body, 3)[:3]
    release = Release(as_type(name), as_int(shard), as_shard_count(shard_count))
    if release.shard >= release.shard_count:
        raise Malformed("a shard that the type does not have")
    return release


PARSERS = {
    Kind.TELL: parse_message, Kind.ASK: parse_message, Kind.REPLY: parse_reply,
    Kind.ERROR: parse_reply, Kind.WELCOME: parse_welcome, Kind.REJECT: parse_refusal,
    Kind.NO_SESSION: parse_refusal, Kind.CREDIT: parse_credit, Kind.RESTORE: parse_restore,
    Kind.RELEASE: parse_release,
}


def parse(envelope: Envelope) -> Any:
    """Gives the body as a value, or None for kinds that have none or that we do not receive."""
    parser = PARSERS.get(envelope.kind)
    return parser(envelope) if parser else None


# --- writing ---


def pack(value: Any) -> bytes:
    return msgpack.packb(value, use_bin_type=True)


def envelope(kind: Kind, *body: Any, correlation: Correlation = None, flags: int = 0) -> bytes:
    return pack([int(kind), flags, correlation, *body])


def tell(type_name: str, entity_id: bytes, method: str, payload: bytes,
         headers: Optional[dict] = None, flags: int = FLAG_GREETED,
         generation: Optional[tuple] = None) -> bytes:
    return envelope(Kind.TELL, type_name, entity_id, method, generation, None, 0, 0, headers,
                    payload, flags=flags)


def ask(correlation: Correlation, type_name: str, entity_id: bytes, method: str, payload: bytes,
        time_left_ms: int, headers: Optional[dict] = None, flags: int = FLAG_GREETED,
        generation: Optional[tuple] = None) -> bytes:
    return envelope(Kind.ASK, type_name, entity_id, method, generation, None, time_left_ms, 0,
                    headers, payload, correlation=correlation, flags=flags)


def again(message: Message) -> bytes:
    """A tell or ask as it was received, but for what only its sender's node needs."""
    return envelope(message.kind, message.type, message.id, message.method, None, None,
                    message.time_left_ms, 0, message.headers, message.payload,
                    correlation=message.correlation)


def reply(correlation: Correlation, payload: bytes) -> bytes:
    return envelope(Kind.REPLY, payload, correlation=correlation)


def error(correlation: Correlation, code: int, text: str = "") -> bytes:
    clean = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
    return envelope(Kind.ERROR, code, clean, correlation=correlation)
