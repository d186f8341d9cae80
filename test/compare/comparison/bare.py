"""The work as a bare script."""

import re
import shutil
from pathlib import Path

from .place import Place

# The names of GCC, as in pipelines/ccache.go.
COMPILER = re.compile(r"(x86_64-linux-gnu-)?(gcc|g\+\+)(-[0-9]+)?|cc|c\+\+")


class Bare:
    name = "bare script"
    asked = (
        "`test/compare/comparison/scripts/`: unpack, set the flags, `setup.py bdist_wheel`, in a chroot of the same root file "
        "system without a network. It does not use earlier runs, and builds only new cells."
    )
    scenarios = ("cold", "unchanged", "patch", "axis", "matrix")
    remembers = False
    apart = 0
    env: tuple[str, ...] = ()

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
            self.place.in_root({tree: "/build", inputs: "/inputs", **self.binds()}, "env", "-i", "PATH=/usr/bin:/bin", *self.env, "sh", "/inputs/build", cell)
            dist[cell] = tree / "dist"

        self.place.each(cells, one)
        return dist

    def binds(self) -> dict[Path, str]:
        return {}


class BareCcache(Bare):
    name = "bare script, ccache"
    asked = "The same with the ccache pinned by builder: default settings, one cache for everything, filled by one build."
    scenarios = ("patch", "axis")
    env = ("COMPILERS=/opt/ccache/compilers", "CCACHE_DIR=/opt/ccache/objects")

    def prepare(self) -> None:
        (program,) = self.place.home.glob("tools/ccache-*/*.data/scripts/ccache")
        (self.place.rootfs / "opt/ccache").mkdir(exist_ok=True)
        compilers = self.place.below("ccache", "compilers")
        shutil.copy(program, compilers)
        for path in (self.place.rootfs / "usr/bin").iterdir():
            if COMPILER.fullmatch(path.name) and not (compilers / path.name).is_symlink():
                (compilers / path.name).symlink_to("ccache")
        self.build(0, list(self.place.workload.cells[:1]))

    def binds(self) -> dict[Path, str]:
        return {self.place.below("ccache"): "/opt/ccache"}
