"""Makes docs/performance.md and its pictures from docs/performance.json."""

from pathlib import Path

from .bare import Bare
from .builder import Builder
from .figures import ratios, spread, text
from .plot import bars

HEAD = """# Performance

This page compares the time of builder with that of other tools for the same work, measured in turn on one machine. `test/compare/compare` writes the page, its pictures and [its figures](performance.json):

```text
test/compare/compare small                                # three rounds of all scenarios
test/compare/compare horovod --rounds 1 --scenarios cold  # one build of Horovod
```

It needs root, Go, and a network for its first downloads. It includes buildah if you have installed it. Run it on an otherwise idle machine.

Each figure is the time of the whole command: the median of the rounds, with the least and the most in brackets. A ratio divides two figures of the same round. The comparison opens every wheel and fails if a wheel lacks the change of its round.

The rows on the compiler cache of builder are of 2026-11-26. Since then a changed patch or axis begins with an empty cache.

A training step of 101 million parameters, 403 MB of gradients, took 1.31 of the time of torch's DDP on two H200 with Horovod's wheel for torch 2.11 (7.5 and 5.7 ms, medians of five rounds in turn of `test/compare/throughput.py`, 2026-11-29). On two H100 it was 1.26. A small transformer had the same 30 losses on one H200 and on two, within 5e-6 (`test/compare/training.py`).
"""

ANSWER = {True: "the same bytes from", False: "other bytes from", None: "no comparison for"}


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
    parts.append(words(results["workloads"]))
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
        "| scenario | tool | seconds | ratio to the bare script |", "| --- | --- | --- | --- |",
    ]
    for s in r["scenarios"]:
        for i, (name, seconds) in enumerate(s["seconds"].items()):
            scenario = s["name"] if i == 0 else ""
            lines.append(f"| {scenario} | {name} | {text(spread(seconds))} | {ratio(s, name, Bare.name)} |")
    for remarks in (behind(r), same(r), [f"Left out: {x['peer']}: {x['reason']}." for x in r["left-out"]]):
        lines += ["", *remarks] if remarks else []
    return "\n".join(lines) + "\n"


def same(r: dict) -> list[str]:
    """Lists the tools by the bytes of their library."""
    said = []
    for answer, text in ANSWER.items():
        names = [p["name"].replace(",", " with") for p in r["peers"] if p["name"] != Bare.name and p["same-library"] is answer]
        if names:
            said.append(f"{text} {', '.join(names)}")
    return [f"Beside the library of the bare script: {'; '.join(said)}."] if said else []


def words(workloads: list) -> str:
    """Explains each scenario and each tool once, for all workloads."""
    scenarios = {s["name"]: s["about"] for r in workloads for s in r["scenarios"]}
    peers = {p["name"]: p for r in workloads for p in r["peers"]}
    lines = ["## Scenarios and tools", "", "| scenario | means |", "| --- | --- |"]
    lines += [f"| {name} | {about} |" for name, about in scenarios.items()]
    lines += ["", "| tool | command |", "| --- | --- |"]
    lines += [f"| {titled(p)} | {p['asked']} |" for p in peers.values()]
    return "\n".join(lines) + "\n"


def titled(peer: dict) -> str:
    """The name of a tool and its version, which for builder stands at each workload."""
    return peer["name"] if peer["name"].startswith(Builder.name) else f"{peer['name']} {peer['version']}".rstrip()


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
