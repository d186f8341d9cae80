"""Packs the released wheel that lies unpacked in the working directory under a
local version: repack.py --local rocm6.1 [--provided NAME]...

The name of the file keeps its tags, and WHEEL is made to say them: some releases
were renamed after they were packed, and `wheel pack` would name them back. The
.dist-info and .data folders and the one line Version of METADATA get the local
version, RECORD is written anew. --provided makes the requirements on a project
that the platform provides Requires-External, which no installer follows. Entries
are sorted and have fixed times and modes: the same tree is the same file. What
would change nothing is an error."""
import argparse
import base64
import csv
import hashlib
import io
import itertools
import os
import re
import sys
import time
import zipfile


def fail(text):
    sys.exit("repacking " + os.environ["BUILDER_SOURCE"] + ": " + text)


def normal(project):
    """The name of a project as indexes compare it."""
    return re.sub(r"[-_.]+", "-", project).lower()


def split(text):
    """The lines of the header of METADATA or WHEEL, and all after them."""
    header, blank, body = text.partition("\n\n")
    return header.rstrip("\n").split("\n"), blank + body


def field(line, key):
    return line.lower().startswith(key.lower() + ":")


def with_version(lines, old, new):
    at = [i for i, line in enumerate(lines) if field(line, "Version")]
    if len(at) != 1 or lines[at[0]].partition(":")[2].strip() != old:
        fail(f"METADATA does not say Version: {old} exactly once")
    return lines[: at[0]] + [f"Version: {new}"] + lines[at[0] + 1 :]


def without(lines, provided):
    """Makes the requirements on provided projects external; each must be there."""
    kept, dropped = [], set()
    for line in lines:
        project = re.match(r"\s*([A-Za-z0-9._-]*)", line.partition(":")[2]).group(1)
        if field(line, "Requires-Dist") and normal(project) in provided:
            print("dropped", line)
            dropped.add(normal(project))
            kept.append("Requires-External:" + line.partition(":")[2])
        else:
            kept.append(line)
    if provided - dropped:
        fail("METADATA does not require " + ", ".join(sorted(provided - dropped)))
    return kept


def with_tags(lines, tags):
    return [line for line in lines if not field(line, "Tag")] + [f"Tag: {tag}" for tag in tags]


def files():
    """Every file of the tree, sorted."""
    found = []
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                fail(f"{path} is no regular file")
            found.append(os.path.relpath(path, "."))
    return sorted(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local", required=True)
    parser.add_argument("--provided", action="append", default=[])
    args = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9]+(\.[a-z0-9]+)*", args.local):
        fail(f"{args.local!r} is no local version")
    distribution, old, *tags = os.environ["BUILDER_SOURCE"].removesuffix(".whl").split("-")
    if "+" in old or len(tags) not in (3, 4):
        fail("it has a local version, or its name is none of a wheel")
    new = f"{old}+{args.local}"
    moved = {f"{distribution}-{old}{end}": f"{distribution}-{new}{end}" for end in (".dist-info", ".data")}
    info = f"{distribution}-{old}.dist-info/"

    def target(path):
        top, slash, rest = path.partition("/")
        return moved.get(top, top) + slash + rest

    def content(path):
        if path == info + "METADATA":
            with open(path, encoding="utf-8", newline="") as f:
                lines, rest = split(f.read())
            lines = without(with_version(lines, old, new), {normal(p) for p in args.provided})
            return ("\n".join(lines) + rest).encode()
        if path == info + "WHEEL":
            with open(path, encoding="utf-8", newline="") as f:
                lines, rest = split(f.read())
            named = ["-".join(t) for t in itertools.product(*(part.split(".") for part in tags[-3:]))]
            return ("\n".join(with_tags(lines, named)) + (rest or "\n")).encode()
        with open(path, "rb") as f:
            return f.read()

    everything = files()
    if info + "METADATA" not in everything or info + "WHEEL" not in everything:
        fail(f"there is no {info}")
    if any(path.startswith(info + "RECORD.") for path in everything):
        fail("it is signed, and the signature would not hold")
    date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # ZIP begins in 1980
    to = os.path.join(os.environ["BUILDER_DIST"], "-".join([distribution, new, *tags]) + ".whl")
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(to, "x", zipfile.ZIP_DEFLATED) as wheel:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, date)
            entry.create_system, entry.external_attr = 3, (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for path in everything:
            if path == info + "RECORD":
                continue
            data = content(path)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow([target(path), "sha256=" + digest, len(data)])
            add(target(path), data, 0o755 if os.stat(path).st_mode & 0o111 else 0o644)
        rows.writerow([target(info + "RECORD"), "", ""])
        add(target(info + "RECORD"), record.getvalue().encode(), 0o644)
    print("packed", os.path.basename(to))


main()
