"""`make bench`."""

from __future__ import annotations

import argparse

from benchmarks import anonymize, foundation, growth, monitor, peers, persons, release, scale, scores, search

SUITES = {
    "foundation": foundation.run,
    "scores": scores.run,
    "monitor": monitor.run,
    "anonymize": anonymize.run,
    "search": search.run,
    "persons": persons.run,
    "growth": growth.run,
    "peers": peers.run,
    "release": release.run,
    "scale": scale.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=[], choices=[[], *SUITES])
    parser.add_argument("--rows", type=int, default=13_000_000)
    options = parser.parse_args()
    for name in options.suites or SUITES:
        for result in SUITES[name](options.rows):  # type: ignore[operator]
            print(result, flush=True)


if __name__ == "__main__":
    main()
