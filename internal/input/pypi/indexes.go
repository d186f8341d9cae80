package pypi

import (
	"maps"
	"regexp"
	"slices"

	"github.com/BurntSushi/toml"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
)

// fromPattern matches a requirement on a package of a named index.
var fromPattern = regexp.MustCompile(`^(([A-Za-z0-9][A-Za-z0-9._-]*)\b.*?) +from ([a-z0-9][a-z0-9.-]*)$`)

// IndexOf returns the name of the index that a requirement names, or "".
func IndexOf(requirement string) string {
	if m := fromPattern.FindStringSubmatch(requirement); m != nil {
		return m[3]
	}
	return ""
}

// question returns the requirements as a pyproject.toml, and the index of each package that
// names one. An explicit index serves the packages that name it, and only those: a public
// package of the same name is never taken, and no other package comes from there.
func (t Tool) question(requirements []string) (text []byte, of map[string]string, err error) {
	dependencies, of := []string{}, map[string]string{}
	sources, indexes := map[string]any{}, []map[string]any{}
	for _, line := range requirements {
		if m := fromPattern.FindStringSubmatch(line); m != nil {
			name, index := wheel.NormalName(m[2]), m[3]
			if t.indexes[index] == "" {
				return nil, nil, diag.Errorf(diag.Usage, "%s comes from the Python index %s, whose address is not known", name, index).
					WithHint("give its address: export BUILDER_PYTHON_INDEX=%s=URL", index)
			}
			line, of[name], sources[name] = m[1], index, map[string]string{"index": index}
		}
		dependencies = append(dependencies, line)
	}
	for _, index := range slices.Compact(slices.Sorted(maps.Values(of))) {
		indexes = append(indexes, map[string]any{"name": index, "url": t.indexes[index], "explicit": true})
	}
	all := map[string]any{"project": map[string]any{"name": "what-a-cell-requires", "version": "0", "dependencies": dependencies}}
	if len(of) > 0 {
		all["tool"] = map[string]any{"uv": map[string]any{"sources": sources, "index": indexes}}
	}
	text, err = toml.Marshal(all)
	return text, of, err
}
