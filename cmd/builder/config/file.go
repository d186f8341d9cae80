// Package config reads builder.yaml, which replaces flags and variables repeated in
// every run, and reports the source of each setting.
//
// A key K of the file corresponds to the variable BUILDER_K and, if a verb has it, the
// flag --K. A flag overrides a variable. A variable overrides the file, which overrides the
// default. Values are never merged: the first source with a key provides its whole value.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/input/store"
)

// A File is builder.yaml as written. The field tags describe the keys: the schema, the
// reference and `builder config show` use these texts.
type File struct {
	Home                 Text     `form:"path" yaml:"home,omitempty" json:"home,omitempty" jsonschema:"description=directory of the tool's own files: store and engine and keys"`
	Recipes              Text     `form:"path" yaml:"recipes,omitempty" json:"recipes,omitempty" jsonschema:"description=directory of a site's recipes and images and patches and diagnoses and profiles; they replace built-in ones of the same name"`
	Out                  Text     `form:"path" yaml:"out,omitempty" json:"out,omitempty" jsonschema:"description=output directory of run"`
	Jobs                 *int     `form:"number" yaml:"jobs,omitempty" json:"jobs,omitempty" jsonschema:"minimum=1,description=number of cells built at a time"`
	Memory               Size     `form:"size" yaml:"memory,omitempty" json:"memory,omitempty" jsonschema:"description=memory limit of concurrent builds; such as 64GB"`
	FailFast             *bool    `form:"true or false" yaml:"fail-fast,omitempty" json:"fail-fast,omitempty" jsonschema:"description=start no further cell after the first failure"`
	Locked               *bool    `form:"true or false" yaml:"locked,omitempty" json:"locked,omitempty" jsonschema:"description=resolve no name; fail if the lock lacks a pin"`
	Offline              *bool    `form:"true or false" yaml:"offline,omitempty" json:"offline,omitempty" jsonschema:"description=use the store only and not the network"`
	StepLimit            Duration `form:"time" yaml:"step-limit,omitempty" json:"step-limit,omitempty" jsonschema:"description=stop a step after this time; such as 6h; 0s is never"`
	Tests                string   `form:"word" yaml:"tests,omitempty" json:"tests,omitempty" jsonschema:"enum=none,enum=quick,enum=full,description=set of upstream's own tests to run"`
	Ccache               *bool    `form:"true or false" yaml:"ccache,omitempty" json:"ccache,omitempty" jsonschema:"description=reuse objects of earlier attempts at the same cell"`
	Progress             string   `form:"word" yaml:"progress,omitempty" json:"progress,omitempty" jsonschema:"enum=auto,enum=live,enum=plain,enum=github,description=format of the progress"`
	Engine               Text     `form:"address" yaml:"engine,omitempty" json:"engine,omitempty" jsonschema:"description=address of the Dagger engine"`
	EnginePatience       Duration `form:"time" yaml:"engine-patience,omitempty" json:"engine-patience,omitempty" jsonschema:"description=give up an engine after this time without a response"`
	EngineCache          Share    `form:"size or share" yaml:"engine-cache,omitempty" json:"engine-cache,omitempty" jsonschema:"description=size limit of the cache of an engine started by builder; such as 40GB or 60% of the disk"`
	EngineImage          Text     `form:"place" yaml:"engine-image,omitempty" json:"engine-image,omitempty" jsonschema:"description=PLACE@sha256:DIGEST of an image of the engine to copy instead of compiling the engine; PLACE is a URL or file:PATH"`
	NoInstall            *bool    `form:"true or false" yaml:"no-install,omitempty" json:"no-install,omitempty" jsonschema:"description=never install host packages"`
	From                 []Text   `form:"list of places" yaml:"from,omitempty" json:"from,omitempty" jsonschema:"description=places of published cells to download instead of building them"`
	FromOnly             *bool    `form:"true or false" yaml:"from-only,omitempty" json:"from-only,omitempty" jsonschema:"description=build nothing: a cell missing at all places of from is an error"`
	Trust                []Text   `form:"list of paths" yaml:"trust,omitempty" json:"trust,omitempty" jsonschema:"description=files of trusted public keys or of keys and identities (.yaml); besides this host's own"`
	Key                  Text     `form:"path" yaml:"key,omitempty" json:"key,omitempty" jsonschema:"description=file of the private key for signatures; never the key itself"`
	Keyless              Text     `form:"address" yaml:"keyless,omitempty" json:"keyless,omitempty" jsonschema:"description=address of a Fulcio that certifies the identity of a job for signatures without a key"`
	Timestamp            Text     `form:"address" yaml:"timestamp,omitempty" json:"timestamp,omitempty" jsonschema:"description=address of a timestamp authority (RFC 3161) that proves the time of every signature without a key"`
	Rekor                Text     `form:"address" yaml:"rekor,omitempty" json:"rekor,omitempty" jsonschema:"description=address of a Rekor that logs signatures without a key"`
	MirrorDebian         []Text   `form:"list of places" yaml:"mirror-debian,omitempty" json:"mirror-debian,omitempty" jsonschema:"description=addresses of Debian mirrors or file:DIR; the first resolves names and needs the index of an archive; the default comes from this host's apt"`
	MirrorDebianSnapshot Text     `form:"address" yaml:"mirror-debian-snapshot,omitempty" json:"mirror-debian-snapshot,omitempty" jsonschema:"description=address of a Debian snapshot archive; for packages missing on the mirrors"`
	MirrorMaven          []Text   `form:"list of places" yaml:"mirror-maven,omitempty" json:"mirror-maven,omitempty" jsonschema:"description=addresses of Maven repositories or file:DIR with the CPythons of images/cpython.yaml; the default comes from Maven's settings on this host"`
	MirrorRegistry       []Text   `form:"list of addresses" yaml:"mirror-registry,omitempty" json:"mirror-registry,omitempty" jsonschema:"description=HOST[:PORT][/PATH] to pull images of Docker Hub from; REGISTRY=HOST[:PORT][/PATH] for another registry"`
	PythonIndex          []Text   `form:"list of addresses" yaml:"python-index,omitempty" json:"python-index,omitempty" jsonschema:"description=NAME=URL of a Python index for the packages whose requirement ends with from NAME; they come from nowhere else and nothing else comes from there"`
	MirrorSource         []Text   `form:"list of sources" yaml:"mirror-source,omitempty" json:"mirror-source,omitempty" jsonschema:"description=NAME=PATH or NAME=URL of a source or Debian package or Python package to fetch there first; as --set source.NAME for every run; a name may occur for each of several files"`
}

// A Text is a value whose tag names its form, see [base.resolve].
type Text string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Text) UnmarshalText(text []byte) error {
	*t = Text(text)
	return plain(string(text))
}

// plain rejects a value that looks like a secret, without repeating it in the error:
// configuration files are copied, committed and printed. It also rejects values that a
// variable cannot hold.
func plain(text string) error {
	switch {
	case strings.Contains(text, "PRIVATE KEY") || store.Redact(text) != text:
		return diag.Errorf(diag.Usage, "the value looks like a secret, which must not be in this file").
			WithHint("set the variable of this key when you call builder; for a signing key, write its path")
	case text == "":
		return errors.New("the value is empty: leave the key out")
	case strings.Contains(text, ","):
		return errors.New("a value cannot have a comma, which separates values in the variable of the key")
	}
	return nil
}

// A Size is a number of bytes with a unit, as in 64GB.
type Size string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Size) UnmarshalText(text []byte) error {
	_, err := size.Parse(string(text))
	*s = Size(text)
	return err
}

// A Share is a [Size] or a percentage of a disk.
type Share string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Share) UnmarshalText(text []byte) error {
	_, err := size.Share(string(text), 0)
	*s = Share(text)
	return err
}

// A Duration is a duration as in 90s or 1h30m.
type Duration string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	if _, err := time.ParseDuration(string(text)); err != nil {
		return fmt.Errorf("%q is not a time such as 90s or 1h30m", text)
	}
	*d = Duration(text)
	return nil
}

// A Setting is the value of a key in a file, in the form of its variable.
type Setting struct {
	Key   string
	Value string
	Pos   diag.Pos
}

// read parses the content of a file and reports all errors together. name is the file's
// name in messages.
func read(name string, from base, data []byte) (Config, error) {
	if blank(data) {
		return Config{}, nil // only comments
	}
	var f File
	index, err := decode.YAML(name, data, &f)
	if err != nil {
		return Config{}, err
	}
	r := reader{index: index, base: from}
	values := reflect.ValueOf(f)
	for i, key := range keys {
		r.setting(key, values.Field(i))
	}
	return Config{Settings: r.settings}, errors.Join(r.errs...)
}

// blank reports whether data contains only comments.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

type reader struct {
	index    decode.Index
	base     base
	settings []Setting
	errs     []error
}

// setting adds the value of a field, if it is set.
func (r *reader) setting(key Key, field reflect.Value) {
	if field.IsZero() {
		return
	}
	var texts []string
	pos := r.index.At("%s", key.Name)
	if field.Kind() == reflect.Slice {
		for i := range field.Len() {
			texts = append(texts, r.text(key, field.Index(i), pos))
		}
	} else {
		texts = []string{r.text(key, field, pos)}
	}
	r.settings = append(r.settings, Setting{key.Name, strings.Join(texts, ","), pos})
}

// text returns one value in the form of a variable.
func (r *reader) text(key Key, v reflect.Value, pos diag.Pos) string {
	switch v := v.Interface().(type) {
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		if *v < 1 {
			r.errs = append(r.errs, diag.At(pos, "%s: %d is less than 1", key.Name, *v))
		}
		return strconv.Itoa(*v)
	case Text:
		return r.base.resolve(key.Form, string(v))
	default:
		return fmt.Sprint(v)
	}
}

// A Key is a key of builder.yaml.
type Key struct {
	Name  string
	Form  string // type of its value: a path, a list of paths, true or false, …
	About string
}

// keys are the keys of [File], in the order of its
// fields.
var keys = fields()

// Keys lists the keys of builder.yaml except axes, in the order of the documentation.
func Keys() []Key { return slices.Clone(keys) }

// Variable returns the environment variable of a key: BUILDER_ENGINE_PATIENCE for
// engine-patience.
func Variable(key string) string {
	return "BUILDER_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

func fields() []Key {
	var all []Key
	for f := range reflect.TypeFor[File]().Fields() {
		form := f.Tag.Get("form")
		if form == "" {
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

// resolve resolves the path in a value: a path, the directory of a place file:DIR, or the
// path of a source NAME=PATH. Addresses stay unchanged.
func (b base) resolve(form, text string) string {
	switch strings.TrimSuffix(strings.TrimPrefix(form, "list of "), "s") {
	case "path":
		return b.path(text)
	case "place":
		if dir, ok := strings.CutPrefix(text, "file:"); ok && !strings.HasPrefix(dir, "//") {
			return "file:" + b.path(dir)
		}
	case "source":
		if name, place, ok := strings.Cut(text, "="); ok && !strings.Contains(place, "://") {
			return name + "=" + b.path(place)
		}
	}
	return text
}

// path resolves a path of the file. ~/ is the user's home directory. The result is
// relative to the working directory if it is below it.
func (b base) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && b.host.Home != "" {
		return filepath.Join(b.host.Home, rest)
	}
	if filepath.IsAbs(text) {
		return text
	}
	return b.host.short(filepath.Join(b.dir, text))
}
