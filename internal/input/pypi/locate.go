package pypi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
)

// Locate returns the addresses of exactly these files in the index, by sha256. The
// addresses are valid for this process only, because an index may sign or move them.
func (t Tool) Locate(ctx context.Context, scratch string, files []File) (map[string]store.Place, error) {
	listed := map[string]store.Place{}
	for _, r := range rounds(files) {
		var pins []string
		for _, project := range slices.Sorted(maps.Keys(r.pins)) {
			pin, err := exact(project, r.pins[project].Version)
			if err != nil {
				return nil, diag.Errorf(diag.Usage, "locating Python packages: %w", err)
			}
			if index := r.pins[project].Index; index != "" {
				pin += " from " + index
			}
			pins = append(pins, pin)
		}
		releases, err := t.compile(ctx, scratch, pins, "--no-deps", "--universal", "--python-version", python3(r.minor))
		if err != nil {
			return nil, err
		}
		for _, p := range releases {
			for _, f := range p.files {
				listed[f.SHA256] = f.source
			}
		}
	}
	places := map[string]store.Place{}
	var absent []string
	for _, f := range files {
		if source, ok := listed[f.SHA256]; ok {
			places[f.SHA256] = source
		} else {
			absent = append(absent, fmt.Sprintf("%s (sha256 %s)", f.Filename, f.SHA256))
		}
	}
	if len(absent) > 0 {
		slices.Sort(absent)
		return places, diag.Errorf(diag.Fetch, "the Python package index does not have %s", strings.Join(slices.Compact(absent), ", ")).
			WithHint("name another place for the same bytes with --set source.NAME=PATH|URL, or update the pins with `builder lock --update all`")
	}
	return places, nil
}

// A round is the question of one call of uv: one version of each project and one
// Python. uv leaves out the wheels for older Pythons.
type round struct {
	minor int
	pins  map[string]File // a file of each project
}

// rounds spreads files over as few calls as possible. A set resolved together needs one
// call. Files for any Python join the newest Python of the set.
func rounds(files []File) []round {
	most := 0
	for _, f := range files {
		most = max(most, pythonMinor(f.Filename))
	}
	if most == 0 {
		most = newest
	}
	var all []round
	for _, f := range files {
		minor := pythonMinor(f.Filename)
		if minor == 0 {
			minor = most
		}
		i := slices.IndexFunc(all, func(r round) bool {
			pin, taken := r.pins[f.Project]
			return r.minor == minor && (!taken || pin.Version == f.Version && pin.Index == f.Index)
		})
		if i < 0 {
			i = len(all)
			all = append(all, round{minor, map[string]File{}})
		}
		all[i].pins[f.Project] = f
	}
	return all
}

// pythonMinor returns the minor version of the only Python 3 that a file supports, or 0
// for several.
func pythonMinor(filename string) int {
	name, err := wheel.ParseName(filename)
	if err != nil || name.ABI == "abi3" {
		return 0
	}
	m := interpreterTag.FindStringSubmatch(name.Python)
	if m == nil || m[1] != "cp" {
		return 0
	}
	minor, _ := strconv.Atoi(m[2])
	return minor
}
