"""Fifty browsers at once, while a large table is anonymized: which requests fail, and how long do they take?

    python -m benchmarks.web_load --sessions 50 --seconds 30 --rows 1000000

It starts `veilmark serve` on a workspace of its own, on this computer, logs everybody in by accounts, and lets each go from
page to page and to the pages' twins under /api, some of them following the job as server-sent events.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.data import HIERARCHIES, QUASI, voters

PASSWORD = "a password for a benchmark"
ACCOUNTS = {"eva": "custodian", "ann": "analyst", "ida": "auditor"}
"""Sessions share these accounts: a session is what counts."""
PAGES = {
    "custodian": ("/studies", "/studies/voters/release", "/ledger", "/trace", "/jobs", "/audit"),
    "analyst": ("/studies", "/studies/voters", "/studies/voters/column?column=yob", "/studies/voters/score", "/jobs"),
    "auditor": ("/ledger", "/trace", "/jobs", "/audit", "/reports"),
}
TWINS = {
    "custodian": ("/api/studies", "/api/studies/voters", "/api/jobs", "/api/ledger"),
    "analyst": ("/api/studies", "/api/studies/voters", "/api/studies/voters/measures", "/api/jobs"),
    "auditor": ("/api/ledger", "/api/trace", "/api/jobs", "/api/audit"),
}
FILES = ("/static/style.css", "/static/app.js")
THINKING = 0.5
"""Seconds between two pages, on average: busier than people are."""


@dataclass
class Seen:
    """What came of the requests: seconds by kind, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: Counter[str] = field(default_factory=Counter)
    events: int = 0

    def __str__(self) -> str:
        lines = [f"{sum(map(len, self.seconds.values())):,} requests, {self.failed.total():,} failed"]
        lines += [f"    failed {count:,}: {what}" for what, count in self.failed.most_common(10)]
        for kind, times in sorted(self.seconds.items()):
            middle, late, last = np.percentile(times, [50, 95, 100])
            lines.append(
                f"    {kind:8} {len(times):7,}   median {middle:6.3f} s   95 % {late:6.3f} s   longest {last:6.3f} s"
            )
        return "\n".join([*lines, f"    events   {self.events:7,} heard"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.rows)
        with serving(Path(folder)) as url:
            seen, job = asyncio.run(load(url, options.sessions, options.seconds))
    print(f"{options.sessions} sessions for {options.seconds:g} s; the job of {options.rows:,} rows: {job}")
    print(seen)
    sys.exit(1 if seen.failed else 0)


def prepare(folder: Path, rows: int) -> None:
    """A workspace with a large study and accounts."""
    from veilmark.study.study import Study
    from veilmark.web.access.users import Users
    from veilmark.web.workspace import Workspace

    workspace = Workspace.open(folder)
    shutil.copy(voters(rows), folder / "voters.parquet")
    roles: dict[str, Any] = {name: {"role": "quasi", "hierarchy": HIERARCHIES.get(name)} for name in QUASI}
    roles |= {"condition": {"role": "sensitive", "weights": {"default": 0.1}}}
    Study.of(folder / "voters.parquet", roles).save(folder / "voters.yaml")
    users = Users(workspace.private / "users.json")
    for name, role in ACCOUNTS.items():
        users.add(name, role, PASSWORD)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The server's address."""
    command = [Path(sys.executable).with_name("veilmark"), "serve", folder, "--port", "0"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        yield next(found[0] for line in lines if (found := re.search(r"http://[^/\s]+", line)))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


async def load(url: str, sessions: int, seconds: float) -> tuple[Seen, str]:
    """Everybody in, the job started, everybody at it until the time is over."""
    seen = Seen()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60)) for _ in range(sessions)
        ]
        names = [list(ACCOUNTS)[i % len(ACCOUNTS)] for i in range(sessions)]
        for client, name in zip(
            clients, names, strict=True
        ):  # One at a time: many tries at once from one address wait.
            await log_in(client, name, seen)
        custodian = clients[names.index("eva")]
        job = await start_job(custodian)
        end = time.monotonic() + seconds
        visits = [browse(c, ACCOUNTS[n], end, i, seen) for i, (c, n) in enumerate(zip(clients, names, strict=True))]
        followers = [follow(c, job, end, seen) for c, n in zip(clients, names, strict=True) if n == "ann"]
        await asyncio.gather(*visits, *followers)
        state = (await custodian.get(f"/api/jobs/{job}")).json()
    return seen, f"{state['state']}{': ' + state['error'] if state['error'] else ''}"


async def log_in(client: httpx.AsyncClient, name: str, seen: Seen) -> None:
    await ask(client, "POST", "/login", "log-in", seen, data={"name": name, "password": PASSWORD}, expected=303)


async def start_job(client: httpx.AsyncClient) -> str:
    """The id of a job that anonymizes the large table."""
    token = (await client.get("/api/session")).json()["csrf"]
    answer = await client.post("/api/studies/voters/anonymize", json={"k": 5}, headers={"X-CSRF-Token": token})
    answer.raise_for_status()
    return str(answer.json()["id"])


async def browse(client: httpx.AsyncClient, role: str, end: float, seed: int, seen: Seen) -> None:
    """Page after page, with what a browser loads beside, and the twins that scripts ask."""
    drawn = random.Random(seed)
    while time.monotonic() < end:
        await ask(client, "GET", drawn.choice(PAGES[role]), "page", seen)
        await asyncio.gather(*(ask(client, "GET", path, "file", seen) for path in FILES))
        await ask(client, "GET", drawn.choice(TWINS[role]), "api", seen)
        await asyncio.sleep(drawn.expovariate(1 / THINKING))


async def follow(client: httpx.AsyncClient, job: str, end: float, seen: Seen) -> None:
    """The job's events, until it is over or the time is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(end - time.monotonic(), 0.1)):
            try:
                async with client.stream("GET", f"/api/jobs/{job}/events") as answer:
                    if answer.status_code != 200:
                        seen.failed[f"{answer.status_code} events"] += 1
                    async for line in answer.aiter_lines():
                        seen.events += line.startswith("data:")
            except httpx.HTTPError as error:
                seen.failed[f"{type(error).__name__} events"] += 1


async def ask(
    client: httpx.AsyncClient, method: str, path: str, kind: str, seen: Seen, expected: int = 200, **more: Any
) -> None:
    start = time.perf_counter()
    try:
        answer = await client.request(method, path, **more)
        if answer.status_code != expected:
            seen.failed[f"{answer.status_code} {path}"] += 1
    except httpx.HTTPError as error:
        seen.failed[f"{type(error).__name__} {path}"] += 1
    seen.seconds[kind].append(time.perf_counter() - start)


if __name__ == "__main__":
    main()
