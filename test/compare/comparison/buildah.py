"""The work as a Containerfile, built by buildah."""

import shutil
from pathlib import Path

from .place import LeftOut, Place
from .workload import HERE


class Buildah:
    name = "buildah"
    asked = (
        "`buildah build --layers --isolation chroot` of `test/compare/comparison/Containerfile`: the same script in the same root file "
        "system as base image, with overlay storage. Layers of earlier builds are used again; the scenarios cold and matrix first remove those of the wheel."
    )
    scenarios = ("cold", "unchanged", "patch", "axis", "matrix")
    remembers = True
    apart = 0

    def __init__(self, place: Place):
        self.place = place

    def version(self) -> str:
        return self.place.run("buildah", "--version").split()[2]

    def prepare(self) -> None:
        if not shutil.which("buildah"):
            raise LeftOut("this host has no buildah: install the Debian package of that name")
        self.root = self.place.below("buildah")
        if "comparison-base" not in self.buildah("images"):
            self.buildah("build", "--isolation", "chroot", "--tag", "comparison-base", "--file", str(HERE / "Containerfile.base"), str(self.place.rootfs))
        self.forget()

    def forget(self) -> None:
        """Removes the layers of the wheel and keeps the base."""
        self.buildah("rmi", "--prune", "--force")
        images = [i for line in self.buildah("images", "--all", "--format", "{{.ID}} {{.Name}}").splitlines() for i, name in [line.split()] if "comparison-base" not in name]
        if images:
            self.buildah("rmi", "--force", *images)

    def build(self, number: int, cells: list[str]) -> dict[str, Path]:
        inputs = self.place.inputs(self.root / "inputs", number)
        dist = {cell: self.root / "dist" / cell for cell in cells}

        def one(cell: str) -> None:
            shutil.rmtree(dist[cell], ignore_errors=True)
            self.buildah(
                "build", "--layers", "--isolation", "chroot", "--file", str(HERE / "Containerfile"), "--build-arg", f"CELL={cell}",
                "--output", str(dist[cell]), str(inputs),
            )

        self.place.each(cells, one)
        return dist

    def buildah(self, *arguments: str) -> str:
        return self.place.run("buildah", "--root", str(self.root / "storage"), "--runroot", str(self.root / "run"), "--storage-driver", "overlay", *arguments)
