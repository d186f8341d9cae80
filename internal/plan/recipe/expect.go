package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/subst"
)

// Expect lists the promises of the artifact. The gates check nothing else. Its fields
// are facts of the artifact that several gates or other packages read. What a single
// gate needs stands in Gates. Patterns have the syntax of [path.Match].
type Expect struct {
	Version     string      `yaml:"version,omitempty" json:"version,omitempty" jsonschema:"description=of the wheel with its local part"`
	Packages    []string    `yaml:"packages,omitempty" json:"packages,omitempty" jsonschema:"description=top-level names that the wheel may hold; scripts/NAME of a program that the system has too and data/DIR below the prefix"`
	Extensions  []string    `yaml:"extensions,omitempty" json:"extensions,omitempty" jsonschema:"description=each pattern must match exactly one file"`
	DeviceCode  []string    `yaml:"device-code,omitempty" json:"device-code,omitempty" jsonschema:"description=GPU targets inside; exactly these"`
	Glibc       string      `yaml:"glibc,omitempty" json:"glibc,omitempty" jsonschema:"description=oldest glibc that the artifact runs with"`
	Tree        string      `yaml:"tree,omitempty" json:"tree,omitempty" jsonschema:"description=name of the archive that is the artifact where there is no wheel: the patched source tree below one directory"`
	Library     string      `yaml:"library,omitempty" json:"library,omitempty" jsonschema:"description=the file that is NCCL or RCCL"`
	LibrarySays string      `yaml:"library-says,omitempty" json:"library-says,omitempty" jsonschema:"description=what the version string of the library must be; NCCL only"`
	Collectives []string    `yaml:"collectives,omitempty" json:"collectives,omitempty" jsonschema:"description=programs of nccl-tests without _perf that must be right and fast on GPUs"`
	Import      []string    `yaml:"import,omitempty" json:"import,omitempty" jsonschema:"description=modules that must import"`
	Frameworks  []string    `yaml:"frameworks,omitempty" json:"frameworks,omitempty" jsonschema:"description=names in the output of horovodrun --check-build"`
	Launcher    string      `yaml:"launcher,omitempty" json:"launcher,omitempty" jsonschema:"enum=mpi,enum=mpich,enum=gloo,description=controller of the two-rank allreduce; mpi is Open MPI"`
	Behaviour   []Behaviour `yaml:"behaviour,omitempty" json:"behaviour,omitempty" jsonschema:"description=what the artifact says when a script asks it"`
	Tests       Tests       `yaml:"tests,omitempty" json:"tests,omitzero" jsonschema:"description=upstream's own tests"`
	Waivers     []Waiver    `yaml:"waivers,omitempty" json:"waivers,omitempty" jsonschema:"description=known failures of gates"`
	// Gates holds the settings of gates. In JSON they stand beside the facts too.
	Gates GateSettings `yaml:",inline" json:"-" jsonschema:"-"`
}

// GateSettings maps names of gates to their settings, as decoded from YAML or JSON.
type GateSettings map[string]any

// Decode decodes the settings of a gate strictly into the value to which into points.
// Without settings the value stays as it is. Settings that state nothing are an error:
// the gate would pass without having looked.
func (g GateSettings) Decode(gate string, into any) error {
	settings, ok := g[gate]
	if !ok {
		return nil
	}
	data, err := json.Marshal(settings)
	if err == nil {
		err = decode.JSON(data, into)
	}
	if err == nil && empty(reflect.ValueOf(into).Elem()) {
		err = errors.New("it promises nothing")
	}
	if err != nil {
		return fmt.Errorf("the settings of %s: %w", gate, err)
	}
	return nil
}

// empty reports whether settings state nothing that a gate could check.
func empty(settings reflect.Value) bool {
	switch settings.Kind() {
	case reflect.Slice, reflect.Map:
		return settings.Len() == 0
	case reflect.Struct:
		for i := range settings.NumField() {
			if !empty(settings.Field(i)) {
				return false
			}
		}
		return true
	}
	return settings.IsZero()
}

// facts is Expect without methods, for its JSON.
type facts Expect

// MarshalJSON writes facts and settings of gates as one object.
func (e Expect) MarshalJSON() ([]byte, error) {
	named, err := json.Marshal(facts(e))
	if err != nil || len(e.Gates) == 0 {
		return named, err
	}
	settings, err := json.Marshal(e.Gates)
	if err != nil || string(named) == "{}" {
		return settings, err
	}
	named[len(named)-1] = ','
	return append(named, settings[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON writes. A name that is no fact is a gate's.
func (e *Expect) UnmarshalJSON(data []byte) error {
	var named facts
	var all map[string]any
	if err := decode.OpenJSON(data, &named); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for f := range reflect.TypeFor[Expect]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(all, name)
	}
	*e = Expect(named)
	if len(all) > 0 {
		e.Gates = all
	}
	return nil
}

// A Promise describes the settings of a gate in the expect of a recipe.
type Promise struct {
	Says  string   // description for the schema
	Of    any      // value of the type of the settings, or nil for a gate without settings
	OneOf []string // all possible values of a text; nil allows every text
}

// A Checker is the settings of a gate that finds faults beyond their type. It reports
// each at its place below the settings, such as ".needed[1]", or "".
type Checker interface {
	Check(problem Report)
}

// A Report adds a fault. The caller may add a hint.
type Report func(at, format string, args ...any) *diag.Error

// Promises maps the name of every gate to its settings. Package gate defines them, and
// this package checks recipes against them.
type Promises map[string]Promise

// types returns the types of the settings, by gate.
func (p Promises) types() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for name, promise := range p {
		if promise.Of != nil {
			all[name] = reflect.TypeOf(promise.Of)
		}
	}
	return all
}

// check returns the faults of a gate's settings beyond their type. pos returns the
// position of a place below them.
func (p Promises) check(settings GateSettings, gate string, pos func(at string) diag.Pos) (errs []error) {
	problem := func(at, format string, args ...any) *diag.Error {
		fault := diag.At(pos(at), "expect."+gate+at+": "+format, args...)
		errs = append(errs, fault)
		return fault
	}
	promise := p[gate]
	value := reflect.New(reflect.TypeOf(promise.Of))
	if err := settings.Decode(gate, value.Interface()); err != nil {
		problem("", "%w", err)
		return errs
	}
	if text := value.Elem(); promise.OneOf != nil && !slices.Contains(promise.OneOf, text.String()) {
		problem("", "%q is not %s", text.String(), strings.Join(promise.OneOf, " or "))
	}
	if checker, ok := value.Elem().Interface().(Checker); ok {
		checker.Check(problem)
	}
	return errs
}

// Fault returns the faults of a gate's settings, without a position.
func (p Promises) Fault(settings GateSettings, gate string) error {
	return errors.Join(p.check(settings, gate, func(string) diag.Pos { return diag.Pos{} })...)
}

// validate rejects settings that their gate would reject after the build. A text
// with a name in double braces is judged once the name has its value.
func (p Promises) validate(f *decode.File, s written) {
	for _, gate := range slices.Sorted(maps.Keys(s.Expect.Gates)) {
		if constant(s.Expect.Gates[gate]) {
			f.Join(p.check(s.Expect.Gates, gate, func(at string) diag.Pos { return f.At(s.at + "expect." + gate + at) })...)
		}
	}
}

// GatesFault checks the settings of a cell that had names in double braces, with the
// values in place of the names.
func (r *Recipe) GatesFault(was, is GateSettings) error {
	var errs []error
	for _, gate := range slices.Sorted(maps.Keys(was)) {
		if !constant(was[gate]) {
			errs = append(errs, r.promises.Fault(is, gate))
		}
	}
	return errors.Join(errs...)
}

// constant reports whether no text in the settings of a gate has a name in double braces.
func constant(settings any) bool {
	data, err := json.Marshal(settings)
	return err == nil && subst.Constant(string(data))
}

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
