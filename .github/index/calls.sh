#!/usr/bin/env bash
# Reads the output of `builder matrix --all`, and prints the calls of build.yml that build
# the proven cells: the small ones on GitHub's runners, the others on RUNNER, if there is
# one.
#
#   builder matrix --all | .github/index/calls.sh RUNNER
set -euo pipefail
jq --compact-output --arg runner "$1" --slurpfile record "$(dirname "$0")/../../recipes/proven.json" '
  def small: .recipe == "ray" or .recipe == "openrlhf" or (.recipe == "horovod" and .axes.rocm == "5.7");
  map(select($record[0].cells[.id]) | {cells: (.flags | join(" "))} +
    if small then {runner: "ubuntu-24.04", disk: "16"} else {runner: $runner, disk: "60"} end |
    select(.runner != "")) | if . == [] then empty else {include: .} end'
