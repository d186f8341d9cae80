"""Writes frameworks.json beside itself: what the newest patch release of each minor release of
torch (from 2.1) and TensorFlow (from 2.15) says in the Python index about CPython, CUDA
and NCCL. Run `make frameworks` after a release, review the change, and give the release
rows in recipes/horovod.yaml. recipes/frameworks_test.go compares both.

The index is pip's own: pip's configuration names it. uv resolves NVIDIA's packages.
"""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

FIRST = {"torch": (2, 1), "tensorflow": (2, 15)}
EXTRA = {"torch": "", "tensorflow": "[and-cuda]"}  # what brings NVIDIA's libraries
WHEEL = re.compile(r"-cp3(\d+)-cp3\d+-manylinux[\w.]*x86_64\.whl$|-cp3(\d+)-cp3\d+-linux_x86_64\.whl$")


def index():
    """The simple index that pip reads."""
    named = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    if named.returncode == 0:
        return named.stdout.strip().rstrip("/") + "/"
    from pip._internal.models.index import PyPI

    return PyPI.simple_url.rstrip("/") + "/"


def files(base, project):
    """The names of the files of a project that are not withdrawn."""
    request = urllib.request.Request(base + project + "/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return [f["filename"] for f in json.load(answer)["files"] if not f.get("yanked")]


def pins(requirement, python):
    """The versions of NVIDIA's run time and NCCL that uv resolves for a requirement."""
    command = ["uv", "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    command += ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    resolved = subprocess.run(command, input=requirement, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^(nvidia-cuda-runtime|nvidia-nccl)(?:-cu\d+)?==(\S+)", resolved, re.M))


def releases(base, project):
    newest, pythons = {}, {}
    for file in files(base, project):
        version = re.match(project + r"-(\d+)\.(\d+)\.(\d+)-", file)
        tag = WHEEL.search(file)
        if not version or not tag:
            continue
        release = tuple(map(int, version.groups()))
        if release[:2] < FIRST[project]:
            continue
        newest[release[:2]] = max(newest.get(release[:2], release), release)
        pythons.setdefault(release, set()).add(int(tag.group(1) or tag.group(2)))
    rows = []
    for minor in sorted(newest):
        release = newest[minor]
        version = ".".join(map(str, release))
        known = [f"3.{minor}" for minor in sorted(pythons[release])]
        found = pins(project + EXTRA[project] + "==" + version, known[-1])
        rows.append({
            "project": project,
            "release": version,
            "pythons": known,
            "cuda": found["nvidia-cuda-runtime"],
            "nccl": found["nvidia-nccl"],
        })
    return rows


def main():
    base = index()
    rows = [row for project in FIRST for row in releases(base, project)]
    text = "[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n"
    Path(__file__).with_name("frameworks.json").write_text(text)


main()
