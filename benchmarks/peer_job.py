"""One method on one table, in whichever environment has it: prints its seconds and its loss as JSON."""

import json
import sys
import tempfile
import time
from pathlib import Path

K, SUPPRESSION = 5, 0.05


def anjana(path, levels):
    import numpy as np
    import pandas as pd
    from anjana.anonymity import k_anonymity

    data = pd.read_csv(path, dtype=str, keep_default_na=False)
    hierarchies = {name: {i: np.array(labels) for i, labels in enumerate(of)} for name, of in levels.items()}
    start = time.perf_counter()
    found = k_anonymity(data, [], list(levels), K, SUPPRESSION * 100, hierarchies)
    seconds = time.perf_counter() - start
    lost = sum(len(data) - len(found) + found[name].map(widths(of)).sum() for name, of in levels.items())
    return seconds, lost / (len(data) * len(levels))


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

    data = pd.read_csv(path, keep_default_na=False)
    numeric = {
        n: (data[n].min(), data[n].max()) for n in levels if pd.api.types.is_numeric_dtype(data[n]) and n != "zip"
    }
    for name in levels:
        if name not in numeric:
            data[name] = data[name].astype("category")
    data["nothing"] = 0
    start = time.perf_counter()
    rows = Preserver(data, list(levels), "nothing").anonymize_k_anonymity(K)
    seconds = time.perf_counter() - start
    lost = 0.0
    for row in rows:
        for name in levels:
            lost += row["count"] * _cover(row[name], numeric.get(name), len(levels[name][0]))
    return seconds, lost / (len(data) * len(levels))


def _cover(label, span, values):
    text = label[0] if isinstance(label, list) else str(label)
    if span is None:
        found = text.count(",") + 1
        return found / values if found > 1 else 0.0
    low, _, high = text.partition("-")
    return (float(high or low) - float(low)) / (span[1] - span[0] or 1)


def ours(path, levels, method):
    from veilmark import Study
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola

    with tempfile.TemporaryDirectory() as folder:
        attributes = {}
        for name, of in levels.items():
            file = Path(folder) / f"{name}.csv"
            file.write_text("\n".join(";".join(row) for row in zip(*of, strict=True)) + "\n", encoding="utf-8")
            numbers = method == "mondrian" and name in ("age", "yob")
            attributes[name] = {"role": "quasi"} if numbers else {"role": "quasi", "hierarchy": {"file": str(file)}}
        study = Study.of(path, attributes)
        chosen = Mondrian(k=K) if method == "mondrian" else Ola(k=K, suppression=SUPPRESSION, loss="gcp")
        start = time.perf_counter()
        found = study.anonymize(chosen, Path(folder) / "release.csv")
        return time.perf_counter() - start, found.plan.loss["gcp"]


def main():
    method, path, hierarchies = sys.argv[1:]
    levels = json.loads(Path(hierarchies).read_text(encoding="utf-8"))
    jobs = {"anjana": anjana, "anonypy": anonypy}
    seconds, loss = jobs[method](path, levels) if method in jobs else ours(path, levels, method)
    print(json.dumps({"seconds": seconds, "loss": float(loss)}))


main()
