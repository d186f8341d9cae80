package decode

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
)

// A File is a decoded file: the position of each value, and the faults found so far.
type File struct {
	Index
	faults []error
}

// Add adds a fault of the value at a path; see [Index.At]. The caller may add a hint.
func (f *File) Add(path, format string, args ...any) *diag.Error {
	e := diag.At(f.At(path), format, args...)
	f.faults = append(f.faults, e)
	return e
}

// Join adds faults that have a position already.
func (f *File) Join(errs ...error) { f.faults = append(f.faults, errs...) }

// Err returns all faults together.
func (f *File) Err() error { return errors.Join(f.faults...) }

// Named requires the name of what a file describes to be that of the file.
func (f *File) Named(kind, name string) {
	if want := strings.TrimSuffix(path.Base(f.file), ".yaml"); name != want && name != "" {
		f.Add("name", "the %s has the name %q, and its file %q", kind, name, want)
	}
}

// Env refuses invalid names of environment variables.
func (f *File) Env(path string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !shell.Name(name) {
			f.Add(path+"."+name, "env: %q is not the name of a variable", name).
				Hint = "use letters, digits and _, and begin with a letter or _"
		}
	}
}

// Prose refuses a text unsuitable for the middle of a line.
func (f *File) Prose(path, text string) {
	if strings.HasSuffix(text, ".") || strings.ContainsFunc(text, unicode.IsControl) {
		f.Add(path, "%s must be one line without a full stop, because it is printed beside a value", path)
	}
}

// An Index holds the position of each value in a file.
type Index struct {
	file   string
	places map[string]diag.Pos
}

func (i Index) add(n *yaml.Node, path string) {
	i.places[path] = at(i.file, n)
	switch n.Kind {
	case yaml.MappingNode:
		for j := 0; j+1 < len(n.Content); j += 2 {
			i.add(n.Content[j+1], strings.TrimPrefix(path+"."+n.Content[j].Value, "."))
		}
	case yaml.SequenceNode:
		for j, item := range n.Content {
			i.add(item, fmt.Sprintf("%s[%d]", path, j))
		}
	}
}

// At returns the position of the value at a path such as axes[1].values[0]. If the value
// does not exist, it is that of the closest enclosing value.
func (i Index) At(path string) diag.Pos {
	for {
		if pos, ok := i.places[path]; ok {
			return pos
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return diag.Pos{File: i.file, Line: i.places[""].Line, Column: i.places[""].Column}
		}
		path = path[:cut]
	}
}
