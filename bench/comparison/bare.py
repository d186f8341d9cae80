"""The work as a script of one's own."""

from pathlib import Path

from .place import Place


class Bare:
    name = "bare script"
    asked = (
        "`bench/comparison/scripts/`: unpack, set the flags, `setup.py bdist_wheel`, in a chroot of the same root file "
        "system without a network. It knows nothing of earlier runs and is asked for new cells only."
    )
    scenarios = ("cold", "unchanged", "patch", "axis", "matrix")
    remembers = False
    apart = 0

    def __init__(self, place: Place):
        self.place = place

    def version(self) -> str:
        return ""

    def prepare(self) -> None:
        pass

    def forget(self) -> None:
        pass

    def build(self, number: int, cells: list[str]) -> dict[str, Path]:
        inputs = self.place.inputs(self.place.below("bare", "inputs"), number)
        dist = {}

        def one(cell: str) -> None:
            tree = self.place.below("bare", cell)
            self.place.in_root({tree: "/build", inputs: "/inputs"}, "env", "-i", "PATH=/usr/bin:/bin", "sh", "/inputs/build", cell)
            dist[cell] = tree / "dist"

        self.place.each(cells, one)
        return dist
