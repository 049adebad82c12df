"""One exception class per error of the protocol.

Written by generate_errors.py; do not edit.
"""

from .errors import ShardbusError


class Timeout(ShardbusError, TimeoutError):
    """No reply came before the deadline."""

    code = 1
    name = "timeout"
    retry = "same_call"
    may_have_happened = True


class UnknownOutcome(ShardbusError):
    """The owner or the way to it was lost after the message was sent."""

    code = 2
    name = "unknown_outcome"
    retry = "same_call"
    may_have_happened = True


class NoSuchMethod(ShardbusError):
    """The entity has no handler for this method."""

    code = 3
    name = "no_such_method"
    retry = "no"
    may_have_happened = False


class NoSuchType(ShardbusError):
    """No node of the cluster hosts this entity type."""

    code = 4
    name = "no_such_type"
    retry = "after_refresh"
    may_have_happened = False


class HandlerFailed(ShardbusError):
    """The entity's handler threw or answered with an error."""

    code = 5
    name = "handler_failed"
    retry = "no"
    may_have_happened = True


class Overloaded(ShardbusError):
    """A bounded buffer or a credit on the way was used up."""

    code = 6
    name = "overloaded"
    retry = "same_call"
    may_have_happened = False


class MailboxFull(ShardbusError):
    """The entity's mailbox is full."""

    code = 7
    name = "mailbox_full"
    retry = "same_call"
    may_have_happened = False


class TooLarge(ShardbusError):
    """The message is larger than the limit agreed for the session."""

    code = 8
    name = "too_large"
    retry = "no"
    may_have_happened = False


class Malformed(ShardbusError):
    """The bytes are not a valid envelope."""

    code = 9
    name = "malformed"
    retry = "no"
    may_have_happened = False


class BadFrame(ShardbusError):
    """The message has more frames than the protocol allows."""

    code = 10
    name = "bad_frame"
    retry = "no"
    may_have_happened = False


class UnknownKind(ShardbusError):
    """The envelope's kind is not known here."""

    code = 11
    name = "unknown_kind"
    retry = "no"
    may_have_happened = False


class NoSession(ShardbusError):
    """The sender has no session here and has to greet again."""

    code = 12
    name = "no_session"
    retry = "after_refresh"
    may_have_happened = False


class IdentitySet(ShardbusError):
    """The socket has a fixed identity, which is not allowed."""

    code = 13
    name = "identity_set"
    retry = "no"
    may_have_happened = False


class VersionMismatch(ShardbusError):
    """The protocol versions do not fit together."""

    code = 14
    name = "version_mismatch"
    retry = "no"
    may_have_happened = False


class ClusterMismatch(ShardbusError):
    """The peer belongs to another cluster."""

    code = 15
    name = "cluster_mismatch"
    retry = "no"
    may_have_happened = False


class ConfigMismatch(ShardbusError):
    """The settings of the two sides do not fit together."""

    code = 16
    name = "config_mismatch"
    retry = "no"
    may_have_happened = False


class NotAuthorised(ShardbusError):
    """The session has no right to do this."""

    code = 17
    name = "not_authorised"
    retry = "no"
    may_have_happened = False


class DuplicateNode(ShardbusError):
    """A living node of this name is already in the cluster."""

    code = 18
    name = "duplicate_node"
    retry = "no"
    may_have_happened = False


class StaleIncarnation(ShardbusError):
    """A newer incarnation of this node is known."""

    code = 19
    name = "stale_incarnation"
    retry = "no"
    may_have_happened = False


class Busy(ShardbusError):
    """The node takes no more sessions now."""

    code = 20
    name = "busy"
    retry = "same_call"
    may_have_happened = False


class NotReady(ShardbusError):
    """The node is not part of a deciding cluster yet or any more."""

    code = 21
    name = "not_ready"
    retry = "same_call"
    may_have_happened = False


class Expired(ShardbusError):
    """The deadline passed while the message still waited to be sent."""

    code = 22
    name = "expired"
    retry = "same_call"
    may_have_happened = False


class Stopped(ShardbusError):
    """The node or client is stopping or stopped."""

    code = 23
    name = "stopped"
    retry = "no"
    may_have_happened = False


class WouldDeadlock(ShardbusError):
    """A blocking ask was made on a thread that has to carry its reply."""

    code = 24
    name = "would_deadlock"
    retry = "no"
    may_have_happened = False


class DecodeFailed(ShardbusError):
    """The payload does not have the shape that was asked for."""

    code = 25
    name = "decode_failed"
    retry = "no"
    may_have_happened = True


class InvalidArgument(ShardbusError):
    """A value handed in is outside its documented range."""

    code = 26
    name = "invalid_argument"
    retry = "no"
    may_have_happened = False


class AddressInUse(ShardbusError):
    """Another process listens on this address."""

    code = 27
    name = "address_in_use"
    retry = "no"
    may_have_happened = False


class StaleOwner(ShardbusError):
    """The message carries an older generation than this owner has seen."""

    code = 28
    name = "stale_owner"
    retry = "after_refresh"
    may_have_happened = False


class TooManyHops(ShardbusError):
    """The message was forwarded more often than allowed."""

    code = 29
    name = "too_many_hops"
    retry = "same_call"
    may_have_happened = False


class NoSuchNode(ShardbusError):
    """No member of the cluster has this name."""

    code = 30
    name = "no_such_node"
    retry = "after_refresh"
    may_have_happened = False


class Unreachable(ShardbusError):
    """No connection to the node could be used."""

    code = 31
    name = "unreachable"
    retry = "same_call"
    may_have_happened = False


class Exhausted(ShardbusError):
    """The process has too few descriptors or too little memory for this."""

    code = 32
    name = "exhausted"
    retry = "no"
    may_have_happened = False


class NoReply(ShardbusError):
    """The handler ended without answering and gave its reply port to nobody."""

    code = 33
    name = "no_reply"
    retry = "no"
    may_have_happened = True


class BadAddress(ShardbusError):
    """The address cannot be used as an endpoint."""

    code = 34
    name = "bad_address"
    retry = "no"
    may_have_happened = False


class Internal(ShardbusError):
    """A fault of shardbus itself; please report it with the text."""

    code = 35
    name = "internal"
    retry = "no"
    may_have_happened = True


class StalePlan(ShardbusError):
    """The cluster has changed since the plan was made."""

    code = 36
    name = "stale_plan"
    retry = "after_refresh"
    may_have_happened = False


ALL = (
    Timeout,
    UnknownOutcome,
    NoSuchMethod,
    NoSuchType,
    HandlerFailed,
    Overloaded,
    MailboxFull,
    TooLarge,
    Malformed,
    BadFrame,
    UnknownKind,
    NoSession,
    IdentitySet,
    VersionMismatch,
    ClusterMismatch,
    ConfigMismatch,
    NotAuthorised,
    DuplicateNode,
    StaleIncarnation,
    Busy,
    NotReady,
    Expired,
    Stopped,
    WouldDeadlock,
    DecodeFailed,
    InvalidArgument,
    AddressInUse,
    StaleOwner,
    TooManyHops,
    NoSuchNode,
    Unreachable,
    Exhausted,
    NoReply,
    BadAddress,
    Internal,
    StalePlan,
)
