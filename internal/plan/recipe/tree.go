package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/base/decode"
)

// treeEnds lists the archive formats supported by the gates, as file name suffixes.
var treeEnds = []string{".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst"}

// validateTree checks recipes with an archive as artifact. It rejects promises that
// only a wheel can keep, and a name without an archive suffix.
func validateTree(f *decode.File, all []written) {
	if !slices.ContainsFunc(all, func(s written) bool { return s.Expect.Tree != "" }) {
		return
	}
	for _, s := range all {
		for _, name := range s.Expect.ofWheels() {
			f.Add(s.at+"expect."+name, "expect.%s is for wheels, and expect.tree makes the artifact an archive", name)
		}
		if name := s.Expect.Tree; name != "" && !isArchive(name) {
			f.Add(s.at+"expect.tree", "%q is not the name of an archive: it must end in one of %s", name, strings.Join(treeEnds, ", "))
		}
	}
}

func isArchive(name string) bool {
	return name == path.Base(name) && slices.ContainsFunc(treeEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// ofWheels returns the names of stated promises that only a wheel can keep: all except
// those valid for any file.
func (e Expect) ofWheels() []string {
	e.Version, e.Tree, e.Behaviour, e.Waivers = "", "", nil, nil
	e.Gates = maps.Clone(e.Gates)
	delete(e.Gates, "size")
	data, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("recipe: a promise is not JSON: %v", err)) // strings, lists and maps only
	}
	var left map[string]json.RawMessage
	if err := json.Unmarshal(data, &left); err != nil {
		panic(fmt.Sprintf("recipe: a promise is not a JSON object: %v", err))
	}
	return slices.Sorted(maps.Keys(left))
}
