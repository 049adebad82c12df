"""The clock of deadlines and leases: it goes on while the machine sleeps."""
import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds since some moment in the past.

    A worker whose machine slept may have lost its right meanwhile, so the clock has to count that
    time. Where there is no such clock (not Linux), it is the monotonic one.
    """
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
