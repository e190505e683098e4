"""Access: who is asking, and may they? One-time link or log-in, sessions, and the limit on wrong passwords."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from veilmark.web.access.users import Role, Users

IDLE, LONGEST = 2 * 3600, 12 * 3600
"""Seconds without a request after which a session ends, and after which it ends in any case."""

FREE_TRIES, LONGEST_WAIT = 5, 900
MOST_REMEMBERED = 10_000

Clock = Callable[[], float]


@dataclass
class Session:
    """Somebody who came in. `csrf` must come with everything that changes something."""

    name: str
    role: Role
    csrf: str
    began: float
    seen: float
    proof: str = ""
    notice: str | None = None
    study: str | None = None


class Sessions:
    """The sessions, by a hash of their cookie. They live in memory: a restart ends them all."""

    def __init__(self, users: Users | None, clock: Clock = time.monotonic) -> None:
        self._users, self._clock = users, clock
        self._by_key: dict[str, Session] = {}
        self._lock = threading.Lock()

    def begin(self, name: str, role: Role, proof: str = "") -> str:
        """A new session; what is returned is the cookie's value, kept nowhere else."""
        cookie, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._by_key = {key: s for key, s in self._by_key.items() if not self._over(s)}
            self._by_key[_key(cookie)] = Session(name, role, secrets.token_urlsafe(32), now, now, proof)
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, if it still holds: not expired, its account there with the same password and role."""
        session = self._by_key.get(_key(cookie)) if cookie else None
        if session is None or self._over(session):
            return None
        if self._users is not None:
            user = self._users.get(session.name)
            if user is None or user.hash != session.proof:
                return None
            session.role = user.role
        session.seen = self._clock()
        return session

    def end(self, cookie: str | None) -> None:
        with self._lock:
            self._by_key.pop(_key(cookie or ""), None)

    def _over(self, session: Session) -> bool:
        now = self._clock()
        return now - session.seen > IDLE or now - session.began > LONGEST


def _key(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


class Throttle:
    """Wrong passwords: after a few free tries, each doubles the time until the next, for the account and the address."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def wait(self, *keys: str) -> int:
        """Seconds until the next try is allowed, 0 if it is now."""
        with self._lock:
            return max(math.ceil(self._until(key) - self._clock() - 1e-6) for key in keys) if keys else 0

    def fail(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                count, _ = self._failed.pop(key, (0, 0.0))
                self._failed[key] = (count + 1, self._clock())
            while len(self._failed) > MOST_REMEMBERED:
                self._failed.pop(next(iter(self._failed)))

    def forget(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self._failed.pop(key, None)

    def _until(self, key: str) -> float:
        count, last = self._failed.get(key, (0, -math.inf))
        pause = 0 if count < FREE_TRIES else min(2 ** (count - FREE_TRIES + 1), LONGEST_WAIT)
        return last + pause if pause else self._clock()


@dataclass
class Access:
    """How one comes in: with accounts by logging in; without, by a link that works once.

    `hosts` are the names by which the server may be called, so that no page from elsewhere can reach it under a name of
    its own; None where that cannot be known.
    """

    users: Users | None = None
    token: str | None = None
    hosts: frozenset[str] | None = None
    cookie: str = "veilmark"
    sessions: Sessions = field(init=False)
    throttle: Throttle = field(default_factory=Throttle)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.users)

    def redeem(self, token: str) -> str | None:
        """A session's cookie for the one-time token, the first time it is shown."""
        with self._lock:
            if self.token is None or not hmac.compare_digest(self.token.encode(), token.encode()):
                return None
            self.token = None
        return self.sessions.begin("custodian", "custodian")

    def log_in(self, name: str, password: str, address: str) -> str | int | None:
        """A session's cookie; or the seconds to wait; or None where name and password do not fit."""
        keys = (f"account {name}", f"address {address}")
        wait = self.throttle.wait(*keys)
        if wait > 0:
            return wait
        self.throttle.fail(*keys)  # Before the slow check, so that many tries at once count as many.
        user = self.users.check(name, password) if self.users else None
        if user is None:
            return None
        self.throttle.forget(*keys)
        return self.sessions.begin(user.name, user.role, user.hash)
