"""The work with builder: with gates, provenance and signature."""

import json
import shutil
from pathlib import Path

from .place import REPOSITORY, Place, read_json
from .workload import constant

PATCH = """name: comparison-round
reason: The constant names the round of a wheel, so that a stale wheel is detected.
upstream: {homepage}
when: {{version: ">=0"}}
edits:
  - kind: append
    file: {file}
    text: {text}
"""


class Builder:
    name = "builder"
    asked = "The whole `builder run`: the build without a network or capabilities, the clean container, the gates, provenance, signature."
    scenarios = ("cold", "unchanged", "patch", "axis", "matrix")
    remembers = True
    apart = 0
    arguments: tuple[str, ...] = ()

    def __init__(self, place: Place):
        self.place = place
        self.steps: dict[str, float] = {}

    def version(self) -> str:
        return self.place.run("git", "describe", "--always", "--dirty", cwd=REPOSITORY).strip()

    def prepare(self) -> None:
        self.run_cells(0, self.place.workload.cells[:1], "--locked")

    def forget(self) -> None:
        pass  # each round has another source and so another key

    def build(self, number: int, cells: list[str]) -> dict[str, Path]:
        return self.run_cells(number, cells, "--locked", "--offline")

    def run_cells(self, number: int, cells: list[str], *arguments: str) -> dict[str, Path]:
        w, out = self.place.workload, self.place.below(self.name) / "out"
        self.place.run(
            str(self.place.builder), "run", w.recipe, *w.axes, f"--{w.axis}", ",".join(cells), "--recipes", str(self.site(number)), "--accept", w.recipe,
            "--out", str(out), "--jobs", str(self.place.jobs), *arguments, *self.arguments,
        )
        made = read_json(out / "run.json")["cells"]
        self.steps = {c["id"]: s["seconds"] for c in made for s in c["steps"] if s["name"] == "build" and not s["cached"]}
        return {c["axes"][w.axis]: Path(c["artifacts"][0]["path"]).parent for c in made}

    def site(self, number: int) -> Path:
        """Adds the round's patch to the recipes."""
        w, site = self.place.workload, self.place.below(self.name) / "site"
        if w.site:
            shutil.copytree(w.site, site, dirs_exist_ok=True)
        (site / "patches" / w.recipe).mkdir(parents=True, exist_ok=True)
        text = json.dumps(constant(number))  # JSON is YAML too
        (site / "patches" / w.recipe / "99-comparison-round.yaml").write_text(PATCH.format(homepage=w.homepage, file=w.touched, text=text))
        return site


class Ccache(Builder):
    name = "builder --ccache"
    asked = "The same with `--ccache`, after one build that filled the cache."
    scenarios = ("patch", "axis")
    apart = 5  # its own source, because the round's is already built
    arguments = ("--ccache",)

    def prepare(self) -> None:
        self.run_cells(self.apart, self.place.workload.cells[:1], "--locked")
