"""How the command line writes what messages name: `--covers 8`, `veilmark ledger verify`."""

from __future__ import annotations

from veilmark.messages import SHARES, Value, percent, spell


class _Options:
    def param(self, name: str, value: Value | None) -> str:
        option = "-o" if name == "output" else f"--{name.replace('_', '-')}"
        if value is None or value is True:
            return option
        return f"{option} {percent(value)}%" if name in SHARES else f"{option} {_typed(value)}"

    def command(self, name: str, sentence: str) -> str:
        return sentence


def _typed(value: Value) -> str:
    return str(value) if isinstance(value, str | int | float) else ",".join(value)


OPTIONS = _Options()


def spelled(text: object) -> str:
    """A text, an error or a warning, as the command line says it."""
    return spell(text, OPTIONS)
