"""One job on one table, in whichever environment has it: prints its seconds, by the clock and of the processor, and what
came out, as JSON. The table's columns are texts: quasi-identifiers, and one called `sensitive`."""

import json
import sys
import tempfile
import time
from pathlib import Path

K, SUPPRESSION = 5, 0.05
NUMBERS = ("age", "yob", "zip")
"""The columns that both Mondrians split as numbers; the others become sets of values."""


def timed(work):
    """What the work returns, with how long it took. Imports are over by then, and so is a peer's reading."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - processor}


def anjana(path, levels):
    import numpy as np
    import pandas as pd
    from anjana.anonymity import k_anonymity

    data = pd.read_csv(path, dtype=str, keep_default_na=False)
    hierarchies = {name: {i: np.array(labels) for i, labels in enumerate(of)} for name, of in levels.items()}
    found, spent = timed(lambda: k_anonymity(data, ["sensitive"], list(levels), K, SUPPRESSION * 100, hierarchies))
    lost = sum(len(data) - len(found) + found[name].map(widths(of)).sum() for name, of in levels.items())
    return spent | {"loss": float(lost / (len(data) * len(levels)))}


def widths(levels):
    """What each label costs: its share of the range of numbers, or of the values."""
    values = levels[0]
    numbers = [float(v) for v in values] if all(v.replace(".", "", 1).isdigit() for v in values) else None
    costs = {}
    for labels in levels:
        members = {}
        for i, label in enumerate(labels):
            members.setdefault(label, []).append(i)
        for label, of in members.items():
            if numbers:
                costs[label] = (numbers[max(of)] - numbers[min(of)]) / (max(numbers) - min(numbers) or 1)
            else:
                costs[label] = len(of) / len(values) if len(of) > 1 else 0.0
    return costs


def anonypy(path, levels):
    import pandas as pd
    from anonypy import Preserver

    data = pd.read_csv(path, dtype=str, keep_default_na=False)
    spans = {}
    for name in levels:
        data[name] = data[name].astype(int if name in NUMBERS else "category")
        spans[name] = (data[name].min(), data[name].max()) if name in NUMBERS else None
    rows, spent = timed(lambda: Preserver(data, list(levels), "sensitive").anonymize_k_anonymity(K))
    lost = sum(row["count"] * cover(row[n], spans[n], len(of[0])) for row in rows for n, of in levels.items())
    return spent | {"loss": float(lost / (len(data) * len(levels)))}


def cover(label, span, values):
    """The share of the range, or of the values, that one of anonypy's labels covers: `17-30`, or `a,b,c`."""
    text = label[0] if isinstance(label, list) else str(label)
    if span is None:
        found = text.count(",") + 1
        return found / values if found > 1 else 0.0
    low, _, high = text.partition("-")
    return (float(high or low) - float(low)) / (span[1] - span[0] or 1)


def pycanon(path, levels):
    import pandas as pd
    from pycanon import anonymity

    data, quasi, sensitive = pd.read_csv(path, dtype=str, keep_default_na=False), list(levels), ["sensitive"]

    def measure():
        others = (
            anonymity.alpha_k_anonymity,
            anonymity.entropy_l_diversity,
            anonymity.recursive_c_l_diversity,
            anonymity.basic_beta_likeness,
            anonymity.enhanced_beta_likeness,
            anonymity.delta_disclosure,
        )
        for other in others:
            other(data, quasi, sensitive)
        k, l = anonymity.k_anonymity(data, quasi), anonymity.l_diversity(data, quasi, sensitive)  # noqa: E741
        return {"k": int(k), "l": int(l), "t": round(float(anonymity.t_closeness(data, quasi, sensitive)), 6)}

    numbers, spent = timed(measure)
    return spent | {"numbers": numbers}


def measured(path, levels):
    import veilmark.engines.duckdb  # noqa: F401  (loaded when a study is opened, else)
    from veilmark import Study
    from veilmark.workbench.measure import measure

    study = Study.of(path, dict.fromkeys(levels, "quasi") | {"sensitive": "sensitive"})
    found, spent = timed(lambda: measure(study))
    of = found.attributes["sensitive"]
    return spent | {"numbers": {"k": found.k, "l": of.diversity.distinct, "t": round(of.t, 6)}}


def anonymized(path, levels, method):
    """Ours reads the file, writes the release and measures it too."""
    import veilmark.engines.duckdb  # noqa: F401  (loaded when a study is opened, else)
    from veilmark import Mondrian, Ola, Study
    from veilmark.workbench.anonymize import anonymize

    with tempfile.TemporaryDirectory() as folder:
        attributes = {"sensitive": {"role": "sensitive"}}
        for name, of in levels.items():
            file = Path(folder) / f"{name}.csv"
            file.write_text("\n".join(";".join(row) for row in zip(*of, strict=True)) + "\n", encoding="utf-8")
            hierarchy = {} if method == "mondrian" else {"hierarchy": {"file": str(file)}}
            attributes[name] = {"role": "quasi", **hierarchy}
        study = Study.of(path, attributes)
        chosen = Mondrian(k=K) if method == "mondrian" else Ola(k=K, suppression=SUPPRESSION, loss="gcp")
        found, spent = timed(lambda: anonymize(study, (), Path(folder) / "release.csv", chosen))
        return spent | {"loss": found.plan.loss["gcp"]}


def main():
    job, path, hierarchies = sys.argv[1:]
    levels = json.loads(Path(hierarchies).read_text(encoding="utf-8"))
    jobs = {"anjana": anjana, "anonypy": anonypy, "pycanon": pycanon, "measure": measured}
    done = jobs[job](path, levels) if job in jobs else anonymized(path, levels, job)
    print(json.dumps(done))


main()
