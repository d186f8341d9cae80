import json
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path

from . import page
from .figures import Spread, digits, ratios, spread, text
from .place import Failed, Place
from .plot import bars
from .rounds import SCENARIOS, Rounds
from .workload import WORKLOADS, constant


class Figures(unittest.TestCase):
    def test_rounds_are_paired(self):
        self.assertEqual(ratios([10, 40, 90], [10, 20, 30]), Spread(2, 1, 3))  # the ratio of the medians is 2 as well
        self.assertEqual(ratios([1, 9, 2], [1, 3, 4]), Spread(1, 0.5, 3))  # the ratio of the medians is 0.67

    def test_unpaired_rounds_are_an_error(self):
        with self.assertRaises(ValueError):
            ratios([1, 2], [1])

    def test_digits(self):
        self.assertEqual([digits(v) for v in (0.0213, 0.938, 9.99, 12.34, 154.3)], ["0.021", "0.94", "9.99", "12.3", "154"])

    def test_a_spread_of_one_value_is_no_range(self):
        self.assertEqual(text(spread([2.0])), "2.00")
        self.assertEqual(text(spread([3.0, 2.0, 2.5])), "2.50 (2.00–3.00)")


class Peer:
    """Writes a wheel at once."""

    name, asked, scenarios, remembers = "bare script", "nothing", tuple(s.name for s in SCENARIOS), True
    apart = 0

    def __init__(self, place, stale=False):
        self.place, self.stale, self.asked_for, self.forgot, self.number = place, stale, [], 0, None

    def version(self):
        return "1"

    def forget(self):
        self.forgot += 1

    def build(self, number, cells):
        self.asked_for.append(list(cells))
        if not self.stale or self.number is None:
            self.number = number
        dist = self.place.below("dist")
        with zipfile.ZipFile(dist / "kiwisolver-1.4.8-cp313-cp313-linux_x86_64.whl", "w") as wheel:
            wheel.writestr("kiwisolver/_cext.cpython-313-x86_64-linux-gnu.so", constant(self.number))
        return {cell: dist for cell in cells}


class TestRounds(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Place(Path(directory.name), WORKLOADS[0], 2)
        self.rounds = Rounds(self.place, [s.name for s in SCENARIOS], lambda line: None)

    def one_round(self, *peers):
        self.rounds.peers = list(peers)
        self.rounds.preparation = {p.name: 0.0 for p in peers}
        self.rounds.round(1, 1)

    def test_requested_cells(self):
        remembers, forgets = Peer(self.place), Peer(self.place)
        forgets.name, forgets.remembers = "fromager", False
        self.one_round(remembers, forgets)
        levels = list(WORKLOADS[0].cells)
        self.assertEqual(remembers.asked_for, [levels[:1], levels[:1], levels[:1], levels[:2], levels])
        self.assertEqual(forgets.asked_for, [levels[:1], levels[:1], levels[:1], levels[1:2], levels])
        self.assertEqual(remembers.forgot, 2)

    def test_a_stale_wheel_is_an_error(self):
        with self.assertRaisesRegex(Failed, "it is stale"):
            self.one_round(Peer(self.place, stale=True))

    def test_a_different_library_is_recorded(self):
        self.rounds.compare({"bare script": {"x86-64": "a"}, "buildah": {"x86-64": "a"}, "fromager": {"x86-64": "b"}})
        self.assertEqual(self.rounds.differ, {"fromager"})

    def test_the_page_says_where_builder_is_slower(self):
        seconds = {"bare script": [1, 1], "builder": [3, 4], "builder: build step": [1, 1], "fromager": [6, 2], "buildah": [2, 2]}
        found = page.behind({"scenarios": [{"name": "cold", "seconds": seconds}, {"name": "patch", "seconds": {"builder": [1], "buildah": [2]}}]})
        self.assertIn("cold 1.25 (0.50–2.00) of fromager; cold 1.75 (1.50–2.00) of buildah.", found[0])
        self.assertEqual(page.behind({"scenarios": []}), [])

    def test_the_result_makes_a_page(self):
        self.one_round(Peer(self.place))
        self.rounds.left_out = [{"peer": "buildah", "reason": "this host has none"}]
        machine = {"cores": 2, "cpu": "a <processor>", "memory": 25, "kernel": "6.1"}
        made = {"date": "2026-01-02", "version": "v1", "machine": machine, **self.rounds.result(1)}
        to = self.place.directory
        page.write(json.loads(json.dumps({"schema": 1, "workloads": [made]})), to)
        said = (to / "performance.md").read_text()
        for want in ("## Small", "1 round, 2026-01-02, builder v1", "| matrix | bare script |", "Left out: buildah: this host has none."):
            self.assertIn(want, said)
        xml.parse(to / "performance-small.svg")


class Plot(unittest.TestCase):
    def test_bars_keep_to_the_picture(self):
        root = xml.fromstring(bars("a <title>", [("cold", [("builder", Spread(0.5, 0.4, 0.6)), ("fromager", Spread(3, 2, 4))])]))
        width = float(root.get("viewBox").split()[2])
        rects = [e for e in root if e.tag.endswith("rect")]
        self.assertEqual(len(rects), 2)
        for r in rects:
            self.assertLess(float(r.get("x")) + float(r.get("width")), width)
        self.assertEqual(float(rects[1].get("width")) / float(rects[0].get("width")), 6)


if __name__ == "__main__":
    unittest.main()
