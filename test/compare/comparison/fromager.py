"""The work with fromager: an sdist, patches, and a variant for each cell."""

import difflib
import json
import shutil
import tarfile
from pathlib import Path

from .place import LeftOut, Place
from .workload import HERE, constant

VARIANT = """  {cell}:
    env: {{CFLAGS: "-march={cell}", CXXFLAGS: "-march={cell}", LDFLAGS: "-Wl,-z,lazy", SOURCE_DATE_EPOCH: "1734998400"}}
"""

# The requirements of the build step, pinned as in the recipe's lock.
CONSTRAINTS = "setuptools==78.1.0\nsetuptools-scm==8.2.0\ncppy==1.3.1\npackaging==26.3\n"


class Fromager:
    name = "fromager"
    asked = (
        "`fromager build-sequence` in the same root file system, with its network, from the same sdist with the same patches "
        "and flags; `fromager bootstrap` has built its build requirements before. `--force` if a patch changed: without "
        "it the stale wheel stays. Each variant has its own work directory, so that variants build in parallel."
    )
    scenarios = ("cold", "unchanged", "patch", "axis", "matrix")
    remembers = False
    apart = 0

    def __init__(self, place: Place):
        self.place = place
        self.built: dict[str, int] = {}  # the round of each cell's wheel

    def version(self) -> str:
        pin = next(line for line in (HERE / "fromager.txt").read_text().splitlines() if line.startswith("fromager=="))
        return pin.removeprefix("fromager==").rstrip(" \\")

    def prepare(self) -> None:
        w = self.place.workload
        if not w.site:
            raise LeftOut("it builds every requirement from source, and TensorFlow for ROCm has none")
        self.root = self.place.below("fromager")
        if not (self.root / "order.json").exists():
            self.install()
            self.bootstrap(w.cells[0])
        for cell in w.cells[1:]:
            if not (self.root / cell).exists():
                shutil.copytree(self.root / w.cells[0], self.root / cell, symlinks=True)
        self.built = {cell: 0 for cell in w.cells}

    def install(self) -> None:
        (uv,) = self.place.home.glob("tools/uv-*/*.data/scripts/uv")
        shutil.copy(uv, self.root / "uv")
        shutil.copy(HERE / "fromager.txt", self.root / "requirements.txt")
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", self.root / "ca.crt")
        shutil.copy("/etc/resolv.conf", self.place.rootfs / "etc/resolv.conf")
        self.inside("/fromager/uv", "venv", "--quiet", "--clear", "--python", "/usr/bin/python3", "/fromager/venv")
        self.inside("/fromager/uv", "pip", "install", "--quiet", "--python", "/fromager/venv", "--require-hashes", "--requirement", "/fromager/requirements.txt")

    def bootstrap(self, cell: str) -> None:
        w = self.place.workload
        shutil.rmtree(self.root / cell, ignore_errors=True)
        self.settings(0, cell)
        (self.root / cell / "constraints.txt").write_text(CONSTRAINTS)
        self.fromager(cell, "bootstrap", f"{w.recipe}=={w.release}")
        order = json.loads((self.root / cell / "work-dir/build-order.json").read_text())
        (self.root / "order.json").write_text(json.dumps([step for step in order if step["dist"] == w.recipe]))

    def forget(self) -> None:
        """Removes the results of the wheel and keeps those of its requirements."""
        name = self.place.workload.recipe
        for cell in list(self.built):
            for pattern in ("wheels-repo/*/", "sdists-repo/builds/", "work-dir/"):
                for path in (self.root / cell).glob(f"{pattern}{name}*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.built = {}

    def build(self, number: int, cells: list[str]) -> dict[str, Path]:
        self.place.each(cells, lambda cell: self.one(number, cell))
        return {cell: self.root / cell / "wheels-repo/downloads" for cell in cells}

    def one(self, number: int, cell: str) -> None:
        stale = self.built.get(cell, number) != number
        self.settings(number, cell)
        self.fromager(cell, "build-sequence", *(["--force"] if stale else []), "/fromager/order.json")
        self.built[cell] = number

    def settings(self, number: int, cell: str) -> None:
        w, overrides = self.place.workload, self.root / cell / "overrides"
        patches = overrides / "patches" / f"{w.recipe}-{w.release}"
        patches.mkdir(parents=True, exist_ok=True)
        for patch in (w.site / "patches" / w.recipe).glob("*.patch"):
            shutil.copy(patch, patches)
        (patches / "99-round.patch").write_text(self.round_patch(number))
        (overrides / "settings").mkdir(exist_ok=True)
        variants = "".join(VARIANT.format(cell=c) for c in w.cells)
        (overrides / "settings" / f"{w.recipe}.yaml").write_text(f"variants:\n{variants}")

    def round_patch(self, number: int) -> str:
        """Returns the round's constant as a diff, fromager's only kind of patch."""
        touched = self.place.workload.touched
        with tarfile.open(self.place.source) as archive:
            before = archive.extractfile(touched).read().decode()
        after = before + constant(number)
        return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{touched}", f"b/{touched}"))

    def fromager(self, cell: str, *arguments: str) -> None:
        self.inside("env", "-C", f"/fromager/{cell}", "fromager", "--constraints-file", "constraints.txt", "--variant", cell, *arguments)

    def inside(self, *command: str) -> None:
        env = ["HOME=/fromager", "LC_ALL=C.UTF-8", "PATH=/fromager/venv/bin:/usr/bin:/bin", "SSL_CERT_FILE=/fromager/ca.crt", "REQUESTS_CA_BUNDLE=/fromager/ca.crt"]
        self.place.in_root({self.root: "/fromager"}, "env", "-i", *env, *command, network=True)
