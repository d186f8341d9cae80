"""The directory of a comparison with all its inputs and results, and the commands run
in it."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from .workload import Workload, constant, mark

REPOSITORY = Path(__file__).resolve().parents[3]


class Failed(Exception):
    """A command failed, or its result is wrong."""


class LeftOut(Exception):
    """A peer cannot take part on this host. The text gives the reason."""


class Place:
    def __init__(self, directory: Path, workload: Workload, jobs: int):
        self.directory, self.workload, self.jobs = directory, workload, jobs
        self.builder = directory / "builder"
        self.home = directory / "home"
        self.rootfs = directory / workload.name / "root" / "rootfs"
        self.source = directory / workload.name / "source.tar"
        self.logs = directory / "logs"

    def prepare(self) -> None:
        """Makes the inputs of all peers: the tool, the root file system before the build step
        of a first run, and an archive of the patched source."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self.run("go", "build", "-trimpath", "-o", str(self.builder), "./cmd/builder", cwd=REPOSITORY)
        if self.source.exists():
            return
        w = self.workload
        root = self.rootfs.parent
        shutil.rmtree(root, ignore_errors=True)
        site = ["--recipes", str(w.site), "--accept", w.recipe] if w.site else []
        first = str(self.below("first"))
        self.run(str(self.builder), "run", w.recipe, *w.axes, f"--{w.axis}", w.cells[0], *site, "--locked", "--out", first)
        self.run(str(self.builder), "debug", "shell", w.recipe, "--out", first, "--to", str(root))
        with tarfile.open(self.source.with_suffix(".part"), "w") as archive:
            for entry in sorted((self.rootfs / "build/src").iterdir()):
                archive.add(entry, entry.name)
        shutil.rmtree(self.rootfs / "build")
        for name in ("build", "inputs", "fromager", "proc", "dev"):
            (self.rootfs / name).mkdir(exist_ok=True)
        self.source.with_suffix(".part").rename(self.source)

    def below(self, *names: str) -> Path:
        """Makes a directory of one peer and returns it."""
        path = self.directory.joinpath(self.workload.name, *names)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def inputs(self, directory: Path, number: int) -> Path:
        """Writes the inputs of the bare script for a round."""
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "source.tar").exists():
            os.link(self.source, directory / "source.tar")
        shutil.copy(self.workload.script, directory / "build")
        (directory / "round").write_text(constant(number))
        return directory

    def run(self, *command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """Runs a command to its end and returns its stdout. The log keeps the whole output.
        An error shows the last lines."""
        env = {**os.environ, "BUILDER_HOME": str(self.home), **(env or {})}
        done = subprocess.run(command, cwd=cwd or self.directory, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        with open(self.logs / "all.log", "a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stderr}{done.stdout}\n")
        if done.returncode:
            end = "\n".join((done.stderr + done.stdout).splitlines()[-15:])
            raise Failed(f"{command[0]}: exit {done.returncode}\n{end}\nthe whole log: {log.name}")
        return done.stdout

    def in_root(self, binds: dict[Path, str], *command: str, network: bool = False) -> str:
        """Runs a command in the root file system and in its own mount namespace. binds maps
        directories to their mount points."""
        pairs = [word for outside, inside in binds.items() for word in (str(outside), inside)]
        script = """
            root=$1; shift
            mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"
            while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done
            shift
            exec chroot "$root" "$@"
        """
        alone = [] if network else ["--net"]
        return self.run("unshare", "--mount", *alone, "sh", "-euc", script, "sh", str(self.rootfs), *pairs, "--", *command)

    def ready(self, peer: str, seconds: float) -> float:
        """Returns the seconds of a peer's first preparation in this directory."""
        path = self.below() / "ready.json"
        known = read_json(path) if path.exists() else {}
        known.setdefault(peer, seconds)
        path.write_text(json.dumps(known))
        return known[peer]

    def each(self, cells: list[str], do) -> None:
        """Calls do for every cell, with at most self.jobs calls at a time."""
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(do, cells))

    def library(self, directory: Path, number: int) -> str:
        """Returns the sha256 of the library in the only wheel of a directory. Fails unless
        the wheel is from this round."""
        wheels = list(directory.glob(f"{self.workload.recipe}-*.whl"))
        if len(wheels) != 1:
            raise Failed(f"{len(wheels)} wheels in {directory}, 1 is wanted")
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = [n for n in wheel.namelist() if fnmatch(n, self.workload.extension)]
            if len(names) != 1:
                raise Failed(f"{wheels[0].name} holds {len(names)} libraries, 1 is wanted")
            data = wheel.read(names[0])
        if mark(number).encode() not in data:
            raise Failed(f"{wheels[0]} was not built in round {number}: it is stale")
        return hashlib.sha256(data).hexdigest()

    def clean(self) -> None:
        """Stops the started engines and removes the directory."""
        for home in self.directory.glob("home*"):
            if self.builder.exists():
                subprocess.run([self.builder, "engine", "down"], env={**os.environ, "BUILDER_HOME": str(home)}, capture_output=True)
        for mount in mounts(self.directory):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", self.directory])


def mounts(below: Path) -> list[str]:
    """Lists the mounts below a directory, innermost first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return sorted((p for p in points if p.startswith(f"{below}/")), reverse=True)


def read_json(path: Path):
    return json.loads(path.read_text())
