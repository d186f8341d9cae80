"""Unpacks a released wheel into a directory, so that patches act on its files.
Arguments: the wheel, the directory. A wheel is believed nothing: a name that
leaves the directory, a link, a name that is there twice or more than any wheel
holds is refused before the first file is written."""
import os
import shutil
import stat
import sys
import zipfile

MOST_MEMBERS = 200_000
MOST_BYTES = 16 << 30  # unpacked


def fault(member):
    """Says why a member must not be unpacked, or nothing."""
    name = member.orig_filename.removesuffix("/")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name or not name.isprintable():
        return "is no plain path"
    if kind not in (0, stat.S_IFDIR if member.is_dir() else stat.S_IFREG):
        return "is no regular file"
    return ""


def main(archive, directory):
    with zipfile.ZipFile(archive) as wheel:
        members = wheel.infolist()
        faults = [f"{m.orig_filename!r} {fault(m)}" for m in members if fault(m)]
        if len({m.filename for m in members}) < len(members):
            faults.append("a name is there twice")
        if len(members) > MOST_MEMBERS or sum(m.file_size for m in members) > MOST_BYTES:
            faults.append("it holds more than a wheel does")
        if faults:
            sys.exit(f"unpacking {os.path.basename(archive)}: " + "; ".join(faults[:20]))
        for member in members:
            path = os.path.join(directory, member.filename)
            if member.is_dir():
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # zipfile reads no more than the directory of the ZIP states, and
            # compares the checksum at the end.
            with wheel.open(member) as packed, open(path, "xb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
            os.chmod(path, 0o755 if member.external_attr >> 16 & 0o111 else 0o644)
    print(f"{len(members)} members of {os.path.basename(archive)}")


main(*sys.argv[1:])
