package config

import (
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A Key is a name that may stand in builder.yaml.
type Key struct {
	Name  string
	Form  string // what its value is: a path, a list of paths, true or false, …
	About string
}

// keys are those of a [File] that are variables too, in the order of its fields.
var keys = fields()

// Keys lists what may stand in builder.yaml beside axes, in the order in which it
// is documented.
func Keys() []Key { return slices.Clone(keys) }

// Variable is the environment variable of a key: BUILDER_ENGINE_IDLE of engine-idle.
func Variable(key string) string {
	return "BUILDER_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// forms says what the value of a key is, by the type of its field.
var forms = map[reflect.Type]string{
	reflect.TypeFor[Address]():   "address",
	reflect.TypeFor[Path]():      "path",
	reflect.TypeFor[Size]():      "size",
	reflect.TypeFor[Share]():     "size or share",
	reflect.TypeFor[Duration]():  "time",
	reflect.TypeFor[*bool]():     "true or false",
	reflect.TypeFor[string]():    "word",
	reflect.TypeFor[*int]():      "number",
	reflect.TypeFor[[]Path]():    "list of paths",
	reflect.TypeFor[[]Place]():   "list of places",
	reflect.TypeFor[[]Address](): "list of addresses",
}

func fields() []Key {
	var all []Key
	for f := range reflect.TypeFor[File]().Fields() {
		form, ok := forms[f.Type]
		if !ok {
			continue // axes
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		_, about, _ := strings.Cut(f.Tag.Get("jsonschema"), "description=")
		all = append(all, Key{name, form, about})
	}
	return all
}

// base is what paths in a file begin at.
type base struct {
	dir  string // of the file
	host Host
}

// path returns a path as it is typed in the working directory.
func (b base) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && b.host.Home != "" {
		return filepath.Join(b.host.Home, rest)
	}
	if filepath.IsAbs(text) {
		return text
	}
	return b.host.short(filepath.Join(b.dir, text))
}

// place is [base.path] of the directory that file:DIR names; an address stays as
// it is.
func (b base) place(text string) string {
	if dir, ok := strings.CutPrefix(text, "file:"); ok && !strings.HasPrefix(dir, "//") {
		return "file:" + b.path(dir)
	}
	return text
}

// sorted walks a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
