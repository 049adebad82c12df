"""Failures of asks and tells as exceptions. The classes of each error are in error_table.py."""

from __future__ import annotations


class ShardbusError(Exception):
    """An error of the protocol, or one that this version does not know.

    `code` and `name` say which; `retry` is "no", "same_call" or "after_refresh";
    `may_have_happened` says whether the effect of the message may exist; `text` is for humans.
    """

    code = 0
    name = "unknown_error"
    retry = "no"
    may_have_happened = True

    def __init__(self, text: str = "", code: int | None = None):
        super().__init__(text)
        self.text = text
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.name}: {self.text or type(self).__doc__}"


class Refusal(Exception):
    """Raised by a handler to end the ask in an error of its own choice: `raise Refusal(error)`.

    Everything else that a handler raises is `handler_failed`. An error of a call that the handler
    made says what happened to that call; the asker would read it as said of his own, such as "not
    delivered, try again" for a message whose effect exists.
    """

    def __init__(self, error: ShardbusError):
        super().__init__(str(error))
        self.error = error


def error_from_code(code: int, text: str = "") -> ShardbusError:
    """Makes the exception for a code; an unknown code is kept in a plain ShardbusError."""
    from .error_table import ALL

    for kind in ALL:
        if kind.code == code:
            return kind(text)
    return ShardbusError(text, code=code)
