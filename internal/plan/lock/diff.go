package lock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Steps lists the steps of changes in the order in which a run executes them. Gates
// covers all steps after the build, and fields that no step reads.
func Steps() []string { return []string{"image", "packages", "source", "patch", "build", "gates"} }

// readers maps fields of an entry to the first step that reads them and all fields below
// them. The gates read all others, or no step does.
var readers = []struct{ field, step string }{
	{"pipeline", "image"},
	{"image.wheels", "packages"}, {"image.python", "packages"}, {"image.site", "packages"},
	{"image.pin.date", "gates"}, {"image", "image"},
	{"inputs", "packages"},
	{"source", "source"},
	{"facts", "patch"}, {"patches", "patch"},
	{"env", "build"}, {"script", "build"}, {"epoch", "build"},
}

// A Change is one difference between two entries, with the first step that reads the
// changed field. A run repeats this step and all later ones.
type Change struct {
	Step string `json:"step"`
	What string `json:"what"`          // the field in the entry: env.CC, image.wheels.cmake
	Was  string `json:"was,omitempty"` // empty if the field is new
	Is   string `json:"is,omitempty"`  // empty if the field is gone
}

// Diff lists the differences between two entries, in the order of [Steps]. It is empty
// if and only if the keys are equal.
func Diff(old, new Entry) []Change {
	was, is := fieldsOf(old), fieldsOf(new)
	both := maps.Clone(was.values)
	maps.Copy(both, is.values)
	var changes []Change
	for _, at := range slices.Sorted(maps.Keys(both)) {
		if before, after := was.values[at], is.values[at]; before != after {
			changes = append(changes, change(at, before, after))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(was.lists)) {
		before, after := was.lists[at], is.lists[at]
		if !slices.Equal(before, after) && slices.Equal(sorted(before), sorted(after)) {
			changes = append(changes, Change{stepOf(at), "order of " + at, strings.Join(before, ", "), strings.Join(after, ", ")})
		}
	}
	if len(changes) == 0 && old.Key() != new.Key() {
		changes = append(changes, Change{"gates", "form of the entry", short(old.Key()), short(new.Key())})
	}
	slices.SortStableFunc(changes, byStep)
	return changes
}

// First returns the first step of the changes, or "" if there are none.
func First(changes []Change) string {
	if len(changes) == 0 {
		return ""
	}
	return slices.MinFunc(changes, byStep).Step
}

func byStep(a, b Change) int {
	return cmp.Compare(slices.Index(Steps(), a.Step), slices.Index(Steps(), b.Step))
}

func stepOf(at string) string {
	for _, r := range readers {
		if at == r.field || strings.HasPrefix(at, r.field+".") {
			return r.step
		}
	}
	return "gates"
}

// change describes how a field differs. If both printed forms are equal, it shows the
// whole values.
func change(at, was, is string) Change {
	c := Change{stepOf(at), at, shown(was), shown(is)}
	if c.Was == c.Is {
		c.Was, c.Is = was, is
	}
	return c
}

// fields is an entry divided into the units shown to users.
type fields struct {
	values map[string]string   // JSON by path
	lists  map[string][]string // names of the items by path
}

func fieldsOf(e Entry) fields {
	var tree any
	if err := json.Unmarshal(e.Canonical(), &tree); err != nil {
		panic(fmt.Sprintf("lock: an entry is not JSON: %v", err))
	}
	f := fields{map[string]string{}, map[string][]string{}}
	f.add("", tree)
	return f
}

// add adds a value. The item of a list is one unit, and so is a file with its digest.
func (f fields) add(at string, value any) {
	switch value := value.(type) {
	case nil:
	case []any:
		for _, item := range value {
			name := nameOf(item)
			for n := 2; slices.Contains(f.lists[at], name); n++ {
				name = fmt.Sprintf("%s (%d)", nameOf(item), n)
			}
			f.lists[at] = append(f.lists[at], name)
			f.values[at+"."+name] = encoded(item)
		}
	case map[string]any:
		if _, isFile := value["sha256"]; isFile {
			f.values[at] = encoded(value)
			return
		}
		for name, field := range value {
			f.add(strings.TrimPrefix(at+"."+name, "."), field)
		}
	default:
		f.values[at] = encoded(value)
	}
}

// nameOf returns the name of an item among those of its list.
func nameOf(item any) string {
	object, ok := item.(map[string]any)
	if !ok {
		return fmt.Sprint(item)
	}
	for _, key := range []string{"name", "project", "recipe", "id", "path"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	return "item"
}

// shown returns the version and digest of a file, a short text as it is, and the short
// digest of any other value. A missing value is "".
func shown(value string) string {
	var file struct{ Version, SHA256 string }
	if err := json.Unmarshal([]byte(value), &file); err == nil && file.SHA256 != "" {
		return file.Version + " " + short(file.SHA256)
	}
	text := value
	isText := json.Unmarshal([]byte(value), &text) == nil
	switch {
	case isText && text == "":
		return "empty"
	case imageDigest.MatchString(text), hexDigest.MatchString(text):
		return short(text)
	case len(text) > 100 || strings.ContainsFunc(text, unicode.IsControl):
		return short(sumOf([]byte(text)))
	}
	return text
}

// short returns the first 12 digits of a digest, for display.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(12, len(digest))]
}
