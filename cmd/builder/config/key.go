package config

import (
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A Key is a key of builder.yaml.
type Key struct {
	Name  string
	Form  string // type of its value: a path, a list of paths, true or false, …
	About string
}

// keys are the keys of [File] except axes, which is no variable, in the order of its
// fields.
var keys = fields()

// Keys lists the keys of builder.yaml except axes, in the order of the documentation.
func Keys() []Key { return slices.Clone(keys) }

// Variable returns the environment variable of a key: BUILDER_ENGINE_PATIENCE for
// engine-patience.
func Variable(key string) string {
	return "BUILDER_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// forms maps the type of a field to the description of its values.
var forms = map[reflect.Type]string{
	reflect.TypeFor[Address]():   "address",
	reflect.TypeFor[Path]():      "path",
	reflect.TypeFor[Place]():     "place",
	reflect.TypeFor[Size]():      "size",
	reflect.TypeFor[Share]():     "size or share",
	reflect.TypeFor[Duration]():  "time",
	reflect.TypeFor[*bool]():     "true or false",
	reflect.TypeFor[string]():    "word",
	reflect.TypeFor[*int]():      "number",
	reflect.TypeFor[[]Path]():    "list of paths",
	reflect.TypeFor[[]Place]():   "list of places",
	reflect.TypeFor[[]Address](): "list of addresses",
	reflect.TypeFor[[]Source]():  "list of sources",
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

// base resolves relative paths in a file.
type base struct {
	dir  string // of the file
	host Host
}

// path resolves a path of the file. The result is relative to the working directory if
// it is below it.
func (b base) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && b.host.Home != "" {
		return filepath.Join(b.host.Home, rest)
	}
	if filepath.IsAbs(text) {
		return text
	}
	return b.host.short(filepath.Join(b.dir, text))
}

// place resolves the directory of file:DIR like [base.path]. Other addresses stay
// unchanged.
func (b base) place(text string) string {
	if dir, ok := strings.CutPrefix(text, "file:"); ok && !strings.HasPrefix(dir, "//") {
		return "file:" + b.path(dir)
	}
	return text
}

// source resolves the path of NAME=PATH like [base.path].
func (b base) source(text string) string {
	name, place, ok := strings.Cut(text, "=")
	if !ok || strings.Contains(place, "://") {
		return text
	}
	return name + "=" + b.path(place)
}

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
