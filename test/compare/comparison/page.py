"""Makes docs/performance.md and its pictures from docs/performance.json."""

from pathlib import Path

from .bare import Bare
from .builder import Builder
from .figures import ratios, spread, text
from .plot import bars

HEAD = """# Performance

This page compares the time of builder with that of other tools for the same work, measured in turn on one machine. `test/compare/compare` writes the page, its pictures and [its figures](performance.json).

```text
test/compare/compare small                                # three rounds of all scenarios
test/compare/compare horovod --rounds 1 --scenarios cold  # one build of Horovod
```

The command needs root, Go, and a network for its first downloads. It includes buildah if you have installed it. It works below one directory (`--dir`) and removes it at the end. Run it on an otherwise idle machine.

Each figure is the time of the whole command. With several rounds, it is the median, with the least and the most in brackets. A ratio divides two figures of the same round, so that a slower machine affects both alike; the table has the median of the ratios. The comparison opens every wheel and fails if a wheel lacks the change of its round.

The rows on the compiler cache of builder are of 2026-11-26. Since then a changed patch or axis begins with an empty cache.
"""

GATES = """## Gates

All gates of a build on one wheel, Horovod 0.28.1 for ROCm 5.7 and TensorFlow 2.13, in a chroot of its run-time packages without the engine. Three rounds, each version in turn, 2026-11-27; 2 processors (AMD EPYC) with other work, before which the gates came first. Seconds and seconds of processors are the sums of the three rounds.

| builder | seconds | processor seconds | ratio of seconds | ratio of processor seconds |
| --- | --- | --- | --- | --- |
| 427baaa2 | 63.2 | 107.5 | 1.00 | 1.00 |
| 8e19d9c5 | 98.1 | 162.3 | 1.55 | 1.51 |
| since then | 73.9 | 126.1 | 1.17 | 1.17 |

427baaa2 took the word of the wheel. Since 8e19d9c5 every rank is watched from outside, `launcher` starts ranks of its own, and `python-source` compares the wheel with its source. Now one process for each container imports the framework, and forks its ranks.
"""


ANSWER = {True: "yes", False: "no", None: "not compared: another source"}


def machine(m: dict) -> str:
    busy = f"; {m['note']}" if "note" in m else ""
    return f"{plural(m['cores'], 'processor')} ({m['cpu']}), {m['memory']} GB of memory, Linux {m['kernel']}{busy}"


def write(results: dict, directory: Path) -> None:
    """Writes the page and one picture for each workload."""
    parts = [HEAD]
    for r in results["workloads"]:
        picture = f"performance-{r['workload']}.svg"
        (directory / picture).write_text(bars(r["about"].split(":")[0], groups(r)))
        parts.append(section(r, picture))
    parts.append(GATES)
    (directory / "performance.md").write_text("\n".join(parts))


def groups(r: dict):
    found = []
    for s in r["scenarios"]:
        rows = [(name, ratios(seconds, s["seconds"][Bare.name])) for name, seconds in s["seconds"].items() if name != Bare.name and Bare.name in s["seconds"]]
        if rows:
            found.append((s["name"], rows))
    return found


def section(r: dict, picture: str) -> str:
    lines = [
        f"## {r['workload'].capitalize()}", "",
        f"{r['about']}. {r['jobs']} cells at a time, {plural(r['rounds'], 'round')}, {r['date']}, builder {r['version']}; {machine(r['machine'])}.", "",
        f"![ratios]({picture})", "",
        "| scenario | tool | seconds | ratio to the bare script | ratio to builder |", "| --- | --- | --- | --- | --- |",
    ]
    for s in r["scenarios"]:
        for name, seconds in s["seconds"].items():
            lines.append(f"| {s['name']} | {name} | {text(spread(seconds))} | {ratio(s, name, Bare.name)} | {ratio(s, name, Builder.name)} |")
    lines += ["", *behind(r)]
    lines += ["", "| scenario | means |", "| --- | --- |"]
    lines += [f"| {s['name']} | {s['about']} |" for s in r["scenarios"]]
    lines += ["", "| tool | version | command | preparation | same library as the bare script |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {p['name']} | {p['version']} | {p['asked']} | {p['preparation']} s | {ANSWER[p['same-library']]} |" for p in r["peers"]]
    lines += [""] + [f"Left out: {x['peer']}: {x['reason']}." for x in r["left-out"]]
    return "\n".join(lines).rstrip() + "\n"


def behind(r: dict) -> list[str]:
    """Lists the other tools that are faster than builder, by scenario."""
    found = []
    for s in r["scenarios"]:
        for name, seconds in s["seconds"].items():
            if not name.startswith((Builder.name, Bare.name)) and Builder.name in s["seconds"]:
                took = ratios(s["seconds"][Builder.name], seconds)
                if took.median > 1:
                    found.append(f"{s['name']} {text(took)} of {name}")
    return ["builder takes longer than another tool in: " + "; ".join(found) + ". It alone runs gates and signs what it made."] if found else []


def ratio(scenario: dict, of: str, to: str) -> str:
    took = scenario["seconds"]
    return text(ratios(took[of], took[to])) if to in took else ""


def plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
