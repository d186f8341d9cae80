"""The rounds of a comparison. All peers do each scenario in turn, so that other load on
the machine affects all of them."""

import time
from dataclasses import dataclass

from .bare import Bare, BareCcache
from .buildah import Buildah
from .builder import Builder, Ccache
from .fromager import Fromager
from .place import LeftOut, Place

PEERS = [Bare, Builder, Ccache, BareCcache, Fromager, Buildah]  # Ccache fetches the program of BareCcache


@dataclass(frozen=True)
class Scenario:
    name: str
    about: str
    before: str = ""  # the method called before the measurement
    source: int = 0  # index of the round's source, from 0
    cells: int = 1  # number of cells at the end
    new: int = 1  # number of new cells among them


# The order within a round. Each scenario uses the state of the one before.
SCENARIOS = [
    Scenario("cold", "no part of the wheel is built; compiler, build requirements and source are present", before="forget"),
    Scenario("unchanged", "the same command again"),
    Scenario("patch", "one patch has changed; it edits one file", source=1),
    Scenario("axis", "one more value of the axis, beside the built cell", source=1, cells=2),
    Scenario("matrix", "all cells, none of them built", before="forget", source=2, cells=-1, new=-1),
]


class Rounds:
    """Runs rounds and collects the seconds of each peer, scenario and round."""

    def __init__(self, place: Place, scenarios: list[str], say):
        self.place, self.say = place, say
        self.chosen = [s for s in SCENARIOS if s.name in scenarios]
        self.seconds: dict[str, dict[str, list[float]]] = {s.name: {} for s in self.chosen}
        self.preparation: dict[str, float] = {}
        self.left_out: list[dict[str, str]] = []
        self.differ: set[str] = set()
        self.first = int(time.time())  # makes the sources differ from those of an earlier comparison in the same directory
        self.peers = []

    def prepare(self) -> None:
        self.place.prepare()
        for kind in PEERS:
            peer = kind(self.place)
            if not set(peer.scenarios) & {s.name for s in self.chosen}:
                continue
            start = time.monotonic()
            try:
                peer.prepare()
            except LeftOut as why:
                self.left_out.append({"peer": peer.name, "reason": str(why)})
                self.say(f"{peer.name} takes no part: {why}")
                continue
            self.preparation[peer.name] = self.place.ready(peer.name, round(time.monotonic() - start, 1))
            self.peers.append(peer)
            self.say(f"{peer.name} is ready")

    def round(self, number: int, of: int) -> None:
        for scenario in self.chosen:
            libraries = {}
            turn = number % len(self.peers)
            for peer in self.peers[turn:] + self.peers[:turn]:
                if scenario.name in peer.scenarios:
                    made = self.measure(peer, scenario, number)
                    libraries.update({peer.name: made} if not peer.apart else {})
                    took = self.seconds[scenario.name][peer.name][-1]
                    self.say(f"round {number}/{of} {scenario.name}: {peer.name} {took} s")
            self.compare(libraries)

    def measure(self, peer, scenario: Scenario, number: int) -> dict[str, str]:
        """Measures one build and returns the digests of its libraries."""
        if scenario.before:
            peer.forget()
        source = self.first + 10 * number + scenario.source + peer.apart
        cells = list(self.place.workload.cells)
        if scenario.cells > 0:
            cells = cells[: scenario.cells] if peer.remembers else cells[scenario.cells - scenario.new : scenario.cells]
        start = time.monotonic()
        dist = peer.build(source, cells)
        self.note(scenario.name, peer.name, max(time.monotonic() - start, 0.01))  # a ratio needs a positive number
        steps = getattr(peer, "steps", {})
        if len(steps) == 1:
            self.note(scenario.name, step_of(peer.name), *steps.values())
        return {cell: self.place.library(dist[cell], source) for cell in dist}

    def note(self, scenario: str, series: str, seconds: float) -> None:
        self.seconds[scenario].setdefault(series, []).append(round(seconds, 2))

    def compare(self, libraries: dict[str, dict[str, str]]) -> None:
        """Records the peers with a library other than the bare script's."""
        for name, made in libraries.items():
            for cell, digest in made.items():
                if libraries.get(Bare.name, {}).get(cell, digest) != digest:
                    self.differ.add(name)

    def ordered(self, scenario: str) -> dict[str, list[float]]:
        """Returns the seconds in the order of the peers, not of their turns."""
        took = self.seconds[scenario]
        names = [name for p in self.peers for name in (p.name, step_of(p.name))]
        return {name: took[name] for name in names if name in took}

    def result(self, rounds: int) -> dict:
        """Returns the content of the results file."""
        w = self.place.workload
        return {
            "workload": w.name,
            "about": w.about,
            "rounds": rounds,
            "jobs": self.place.jobs,
            "scenarios": [{"name": s.name, "about": s.about, "seconds": self.ordered(s.name)} for s in self.chosen],
            "peers": [
                {"name": p.name, "version": p.version(), "asked": p.asked, "preparation": self.preparation[p.name], "same-library": None if p.apart else p.name not in self.differ}
                for p in self.peers
            ],
            "left-out": self.left_out,
        }


def step_of(peer: str) -> str:
    """Returns the name of the series of a peer's build step."""
    return f"{peer}: build step"
