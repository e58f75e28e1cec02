"""When to send a request again, and how long to wait before: as the forge's headers say, within a bound.

One policy for both clients. Reads and changes that may be repeated are; a request that makes something is only repeated
when the forge said that it was refused unread.
"""

from __future__ import annotations

import contextlib
import email.utils
import time
from types import TracebackType
from typing import Any

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Retry
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import MaxRetryError

_TRIES = 5
_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BROKEN = frozenset({500, 502, 503, 504})
_LIMITED = frozenset({403, 429})
_BACKOFF = 1.0  # seconds, doubled with each try
SECONDARY_WAIT = 60.0  # what GitHub asks for when a secondary limit names no time


class Patience:
    """How many seconds a run may still wait for a forge. Shared by all requests of the run."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def allows(self, seconds: float) -> bool:
        """Whether a wait is within the bound."""
        return seconds <= self.left

    def wait(self, seconds: float) -> None:
        """Wait, and remember it."""
        self.left -= seconds
        time.sleep(seconds)


class Waiting(Retry):
    """urllib3's retries by the rules of forges. A response that is not tried again is returned as it is."""

    def __init__(self, *args: Any, patience: Patience, **kwargs: Any) -> None:
        kwargs.setdefault("total", _TRIES)
        kwargs.setdefault("allowed_methods", None)
        kwargs.setdefault("status_forcelist", _BROKEN | _LIMITED)
        kwargs["raise_on_status"] = False
        super().__init__(*args, **kwargs)
        self.patience = patience

    def new(self, **kw: Any) -> Waiting:
        """A copy with other counts."""
        return super().new(patience=self.patience, **kw)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Waiting:
        """Count a try. Raises `MaxRetryError` when there must be no other one."""
        repeatable = method in _REPEATABLE
        again = (
            repeatable if response is None else _refused_unread(response) or (repeatable and response.status in _BROKEN)
        )
        if not again:
            raise MaxRetryError(_any_pool(_pool), url or "", error)
        counted = super().increment(method, url, response, error, _pool, _stacktrace)
        if not self.patience.allows(self._seconds(response, counted)):
            raise MaxRetryError(_any_pool(_pool), url or "", error)
        return counted

    def sleep(self, response: BaseHTTPResponse | None = None) -> None:
        """Wait before the next try."""
        self.patience.wait(self._seconds(response, self))

    def _seconds(self, response: BaseHTTPResponse | None, counted: Retry) -> float:
        asked = None if response is None else asked_to_wait(dict(response.headers))
        if asked is not None:
            return asked
        if response is not None and response.status in _LIMITED:
            return SECONDARY_WAIT
        tries = len(counted.history)
        return _BACKOFF * 2.0 ** (tries - 1) if tries > 0 else 0.0


def asked_to_wait(headers: dict[str, str]) -> float | None:
    """How many seconds a forge's headers ask to wait; None when they do not say."""
    told = {name.lower(): value for name, value in headers.items()}
    after = told.get("retry-after")
    if after is not None:
        if after.strip().isdecimal():
            return float(after)
        with contextlib.suppress(ValueError):  # neither: as if it was not said
            return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
    for remaining, reset in (
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
    ):
        if told.get(remaining) == "0" and told.get(reset, "").isdecimal():
            return max(0.0, float(told[reset]) - time.time()) + 1.0
    return None


def _refused_unread(response: BaseHTTPResponse) -> bool:
    """A rate limit. A 403 without its headers means that one may not."""
    if response.status == 429:
        return True
    return response.status == 403 and asked_to_wait(dict(response.headers)) is not None


def _any_pool(pool: ConnectionPool | None) -> ConnectionPool:
    return pool if pool is not None else HTTPConnectionPool("forge")
