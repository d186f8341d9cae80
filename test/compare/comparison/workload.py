"""The workloads: a recipe, the axis of its cells, and the same work as a bare script."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Workload:
    name: str
    about: str
    recipe: str
    release: str
    axis: str
    cells: tuple[str, ...]  # values of the axis; most scenarios build the first
    axes: tuple[str, ...]  # arguments for the other axes
    site: Path | None  # directory of the recipe, or None if it is built in
    touched: str  # source file that gets the round's constant
    extension: str  # pattern of the library in the wheel
    homepage: str

    @property
    def script(self) -> Path:
        return HERE / "scripts" / self.recipe


def constant(number: int) -> str:
    """Returns C++ that distinguishes the source of one round. The comparison looks for it
    in every wheel and fails on a stale one."""
    return f'\nextern const char comparison_round[];\n__attribute__((used)) const char comparison_round[] = "{mark(number)}";\n'


def mark(number: int) -> str:
    return f"round {number} of the comparison"


WORKLOADS = [
    Workload(
        name="small",
        about="kiwisolver 1.4.8: one extension of seven C++ files, compiled in sequence without optimisation, for one of four x86-64 levels",
        recipe="kiwisolver", release="1.4.8", axis="level",
        cells=("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"),
        axes=(), site=HERE.parent / "site", touched="py/src/strength.cpp",
        extension="kiwisolver/_cext*.so", homepage="https://github.com/nucleic/kiwi",
    ),
    Workload(
        name="horovod",
        about="Horovod 0.28.1 with RCCL for ROCm 5.7 and TensorFlow 2.13: 32 files, compiled by one job per processor",
        recipe="horovod", release="0.28.1", axis="arch",
        cells=("gfx90a", "gfx1100"),
        axes=("--rocm", "5.7"), site=None, touched="horovod/common/half.cc",
        extension="horovod/tensorflow/mpi_lib*.so", homepage="https://github.com/horovod/horovod",
    ),
]
