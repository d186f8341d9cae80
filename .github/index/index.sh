#!/usr/bin/env bash
# Makes the directory SITE, a static index of the proven wheels below RESULTS:
#
#   BUILDER_TRUST=builder.pub .github/index/index.sh RESULTS SITE
#
# RESULTS is what `builder run --out` leaves, or the artifacts cell-… of build.yml. It
# publishes every cell there, or none: each must have passed with signed statements, be
# the cell of today's inputs with the bytes that recipes/proven.json records, and have
# licences of the list below. Needs builder, jq and pip.
set -euo pipefail
shopt -s inherit_errexit # a command that fails in $(…) ends the script
results=$1
site=$2
recipes=${BUILDER_RECIPES:-$(dirname "$0")/../..}/recipes

# They allow everybody to pass a wheel on that keeps its notices and names its sources,
# as the SBOM does. A recipe states them in `license` and `vendored`.
free='Apache-2\.0|BSD-3-Clause|BSL-1\.0|MIT|MPL-2\.0|Unlicense'

readarray -d '' cells < <(find "$results" -name entry.json -printf '%h\0' | sort -z)
if [ ${#cells[@]} = 0 ]; then
  echo "error: $results holds no cell" >&2
  exit 1
fi
verified=$(builder verify "${cells[@]}" --json) # it prints what it refuses

names=$(jq -r '[.cells[].recipe] | unique | join(" ")' "$recipes/proven.json")
# shellcheck disable=SC2086 # names of recipes have no spaces
stale=$(builder list $names | sed -n 's/^  \(.*\), stale: .*/\1/p')
faults=$(
  jq -r --slurpfile record "$recipes/proven.json" --arg stale "$stale" '.artifacts[] | $record[0].cells[.cell] as $proof |
    if $proof == null then "\(.cell) has no record"
    elif $proof.key != .key then "\(.cell) has the key \(.key), and its record \($proof.key)"
    elif $proof.wheel != .sha256 then "\(.cell) has the sha256 \(.sha256), and its record \($proof.wheel)"
    elif IN(.cell; $stale | splits("\n")) then "\(.cell) is stale"
    else empty end' <<< "$verified"
  jq -r --arg free "^($free)( AND ($free))*\$" '. as $entry | .license, .vendored[]?.license |
    select(. // "" | test($free) | not) | "\($entry.id): its licence is \(. // "unknown")"' "${cells[@]/%//entry.json}"
)
if [ -n "$faults" ]; then
  echo "error: nothing is published:"$'\n'"$faults" >&2
  exit 1
fi
builder publish "${cells[@]}" --to "file:$site"
