"""Accounts: a name, a role and an argon2 hash of the password each, in the workspace's private folder."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from veilmark.errors import OptionError, did_you_mean
from veilmark.messages import command
from veilmark.output import whole_file

if TYPE_CHECKING:
    from argon2 import PasswordHasher

Role = Literal["custodian", "analyst", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
SHORTEST, LONGEST = 12, 200


@dataclass(frozen=True)
class User:
    """An account; `hash` is argon2's, with its own salt, and stays out of every message."""

    name: str
    role: Role
    hash: str

    def __repr__(self) -> str:
        return f"User({self.name}, {self.role})"


@dataclass(frozen=True)
class Users:
    """The accounts in a file, read anew each time, so that a removed account is refused at once."""

    path: Path

    def all(self) -> dict[str, User]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return {user["name"]: User(**user) for user in content["users"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError):
            raise OptionError(
                f"The accounts file '{self.path}' cannot be read, or is damaged. Restore or remove it."
            ) from None

    def get(self, name: str) -> User | None:
        return self.all().get(name)

    def add(self, name: str, role: str, password: str) -> User:
        if name in self.all():
            raise OptionError(
                f"There is an account '{name}' already. {command('users password', lead='Change its password with')}"
            )
        return self._put(name, role, password)

    def set_password(self, name: str, password: str) -> User:
        return self._put(name, self.known(name).role, password)

    def remove(self, name: str) -> None:
        self.known(name)
        self._save({n: user for n, user in self.all().items() if n != name})

    def known(self, name: str) -> User:
        """The account of that name, which must be there."""
        user = self.get(name)
        if user is None:
            raise OptionError(
                f"There is no account '{name}'.{did_you_mean(name, self.all())} {command('users list', lead='See')}"
            )
        return user

    def check(self, name: str, password: str) -> User | None:
        """The account, where the password is right. An unknown name takes as long as a wrong password."""
        from argon2.exceptions import InvalidHashError, VerificationError

        user = self.get(name)
        try:
            _hasher().verify(user.hash if user else _nobody(), password[:LONGEST])
        except (VerificationError, InvalidHashError):
            return None
        return user

    def _put(self, name: str, role: str, password: str) -> User:
        known = next((r for r in ROLES if r == role), None)
        if known is None:
            raise OptionError(f"'{role}' is not a role.{did_you_mean(role, ROLES)} The roles are {', '.join(ROLES)}.")
        if not NAME.fullmatch(name):
            raise OptionError(f"'{name[:64]}' cannot be a name: use letters, digits, and . _ @ - after the first.")
        if not SHORTEST <= len(password) <= LONGEST:
            raise OptionError(f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(password)}.")
        user = User(name, known, _hasher().hash(password))
        self._save(self.all() | {name: user})
        return user

    def _save(self, users: dict[str, User]) -> None:
        content = {"version": 1, "users": [asdict(user) for user in users.values()]}
        with whole_file(self.path) as temporary:
            temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.chmod(self.path, 0o600)


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobody() -> str:
    """The hash of a password that nobody knows."""
    return _hasher().hash(os.urandom(16).hex())
