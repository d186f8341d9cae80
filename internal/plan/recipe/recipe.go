// Package recipe defines recipes. A recipe is the hand-written description of one
// distribution: the origin of its source, the axes of its matrix, the combinations that
// work together, the inputs of the build step, and the promises of the artifact.
//
// A [Recipe] is as written and never changes after loading. [Recipe.For] returns its
// [Settings] for one point of the matrix. Package matrix determines the points, and
// package lock resolves the names in a text. This package resolves nothing and looks
// nothing up.
package recipe

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/input/git"
	"builder/internal/plan/version"
)

// A Recipe describes one distribution.
type Recipe struct {
	Name       string     `yaml:"name" json:"name" jsonschema:"description=name of the distribution; also the name of the file"`
	Summary    string     `yaml:"summary" json:"summary" jsonschema:"description=one line for builder list"`
	Homepage   string     `yaml:"homepage" json:"homepage" jsonschema:"description=where the distribution lives"`
	ID         string     `yaml:"id" json:"id" jsonschema:"description=template of a cell's readable id; every axis that tells cells apart must be in it"`
	Axes       []Axis     `yaml:"axes" json:"axes" jsonschema:"minItems=1,description=dimensions of the matrix"`
	Selectors  []Selector `yaml:"selectors,omitempty" json:"selectors,omitempty" jsonschema:"description=flags that choose values of axes by the release of another project"`
	Compatible []Rule     `yaml:"compatible,omitempty" json:"compatible,omitempty" jsonschema:"description=which combinations go together; the first rule that a combination breaks is the reason for its exclusion"`
	Source     Source     `yaml:"source" json:"source" jsonschema:"description=what is built"`
	Build      string     `yaml:"build" json:"build" jsonschema:"description=shell script run in the patched source tree; the wheel or the archive goes to $BUILDER_DIST"`

	Settings `yaml:",inline" json:",inline"`
	Variants []Variant `yaml:"variants,omitempty" json:"variants,omitempty" jsonschema:"description=settings that hold only where a condition over axes does"`

	promises Promises // of the gates that it may name

	index decode.Index // positions in the file, for errors found after decoding
}

// An Axis is a named dimension of the matrix. Its most preferred value comes first.
type Axis struct {
	Name   string   `yaml:"name" json:"name" jsonschema:"description=name of the flag"`
	About  string   `yaml:"about" json:"about" jsonschema:"description=one line for the help of the flag"`
	Values []string `yaml:"values" json:"values" jsonschema:"minItems=1,description=most preferred first; versions are quoted"`
	// Option is set if only its own flag chooses another value than the first. The matrix
	// of all cells has the first one.
	Option bool `yaml:"option,omitempty" json:"option,omitempty" jsonschema:"description=only its own flag chooses another value than the first"`
	// Finer says why a value serves requests for its own minor or patch releases: 12 for
	// 12.8. Without it they are unknown values.
	Finer *Reason `yaml:"finer,omitempty" json:"finer,omitempty" jsonschema:"description=why a value serves requests with further numbers: 12 for 12.8"`
}

// Coarser returns the value of the axis that serves a request for a finer release: 6.1 for
// 6.1.3. It returns false if the text is a request for values of the axis, and for an axis
// whose values serve no finer releases.
func (a Axis) Coarser(text string) (value string, ok bool) {
	if a.Finer == nil || text == "" {
		return "", false
	}
	if _, err := version.Select(text, a.Values); err == nil {
		return "", false
	}
	return version.Coarser(text, a.Values)
}

// A Reason is a fact for users and its source.
type Reason struct {
	Because string `yaml:"because" json:"because" jsonschema:"description=the reason that plan prints"`
	Source  string `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
}

// A Rule restricts combinations: if When holds, Needs or at least one row of OneOf must
// hold.
type Rule struct {
	When    Condition   `yaml:"when" json:"when" jsonschema:"description=axes with constraints; the rule is about the combinations for which all hold"`
	Needs   Condition   `yaml:"needs,omitempty" json:"needs,omitempty" jsonschema:"description=what must hold"`
	OneOf   []Condition `yaml:"one-of,omitempty" json:"one-of,omitempty" jsonschema:"description=rows of a table; one of them must hold"`
	Because string      `yaml:"because" json:"because" jsonschema:"description=the reason that plan prints for an excluded combination"`
	Source  string      `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
}

// Rows returns the alternatives of the rule. One of them must hold.
func (r Rule) Rows() []Condition {
	if len(r.OneOf) > 0 {
		return r.OneOf
	}
	return []Condition{r.Needs}
}

// A Condition maps axes to constraints. It holds if all constraints do.
type Condition map[string]string

// SourceKind is the way to obtain a source.
type SourceKind string

// The kinds of sources.
const (
	Sdist   SourceKind = "sdist"   // a source distribution from the Python index
	Git     SourceKind = "git"     // the tree of a commit, with its submodules
	Archive SourceKind = "archive" // an upstream archive in the pool of a Debian archive
	Wheel   SourceKind = "wheel"   // a released wheel from the Python index, for the Python of the cell
)

// A Source names the project and version to build. Both may contain names in double
// braces.
type Source struct {
	Project string `yaml:"project" json:"project" jsonschema:"description=name of the project in the Python index or of the source"`
	Version string `yaml:"version" json:"version" jsonschema:"description=version of the source; often {{version}}"`
	// Released maps a version to its date, used as SOURCE_DATE_EPOCH. A commit has its
	// own date.
	Released map[string]string `yaml:"released,omitempty" json:"released,omitempty" jsonschema:"description=version to date (2023-06-12); SOURCE_DATE_EPOCH of its builds; not for git"`
}

// An Origin describes where the source tree comes from. Its texts may contain names in
// double braces.
type Origin struct {
	Kind       SourceKind `yaml:"kind" json:"kind" jsonschema:"enum=sdist,enum=git,enum=archive,enum=wheel,description=sdist and wheel come from the Python index; git from a repository; archive from a Debian pool"`
	Repository string     `yaml:"repository,omitempty" json:"repository,omitempty" jsonschema:"format=uri,description=git: address"`
	Tag        string     `yaml:"tag,omitempty" json:"tag,omitempty" jsonschema:"description=git: tag whose commit the lock holds"`
	Commit     string     `yaml:"commit,omitempty" json:"commit,omitempty" jsonschema:"description=git: commit of 40 hexadecimal digits; beside a tag the one that it must lead to"`
	Under      string     `yaml:"under,omitempty" json:"under,omitempty" jsonschema:"description=git: folder of the tree that is wanted; without submodules; in from it is the root of the source"`
	Path       string     `yaml:"path,omitempty" json:"path,omitempty" jsonschema:"description=archive: path in the pool"`
	Size       int64      `yaml:"size,omitempty" json:"size,omitempty" jsonschema:"description=archive: bytes"`
	SHA256     string     `yaml:"sha256,omitempty" json:"sha256,omitempty" jsonschema:"description=archive: digest"`
}

// Where names the kind of the source and its place there: git tag v0.28.1 of URL.
func (s Origin) Where() string {
	switch s.Kind {
	case Git:
		words := []string{"git"}
		switch {
		case s.Tag != "":
			words = append(words, "tag", s.Tag)
		case s.Commit != "":
			words = append(words, "commit", s.Commit)
		}
		if s.Under != "" {
			words = append(words, "folder", s.Under)
		}
		return strings.Join(append(words, "of", s.Repository), " ")
	case Archive:
		return "archive " + s.Path + " of the Debian pool"
	case Sdist:
		return "sdist of the Python index"
	case Wheel:
		return "wheel of the Python index"
	}
	return ""
}

// kinds lists every kind of source for messages.
const kinds = "sdist, git, archive or wheel"

var (
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	digest = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Fault returns the fields missing for the kind of origin, or nil.
func (s Origin) Fault() error {
	needs := map[SourceKind]map[string]bool{
		Sdist:   {},
		Wheel:   {},
		Git:     {"repository": s.Repository != "", "tag or from.commit": s.Tag != "" && s.Commit == "" || commit.MatchString(s.Commit)},
		Archive: {"path": s.Path != "", "size": s.Size > 0, "sha256 of 64 digits of 0-9 and a-f": digest.MatchString(s.SHA256)},
	}[s.Kind]
	if needs == nil {
		return diag.Errorf(diag.Usage, "from.kind %q is not %s", s.Kind, kinds)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if !needs[name] {
			errs = append(errs, diag.Errorf(diag.Usage, "a source of kind %s needs from.%s", s.Kind, name))
		}
	}
	if s.Kind == Git && s.Repository != "" {
		errs = append(errs, git.Repository(s.Repository).Remote())
	}
	return errors.Join(errs...)
}

// Settings are the properties of a build that may differ between cells.
type Settings struct {
	Vars       map[string]string `yaml:"vars,omitempty" json:"vars,omitempty" jsonschema:"description=names for the id and the texts below; their values may hold axes"`
	From       Origin            `yaml:"from,omitempty" json:"from,omitzero" jsonschema:"description=where the source tree comes from"`
	TestsFrom  Origin            `yaml:"tests-from,omitempty" json:"tests-from,omitzero" jsonschema:"description=where the tests of expect.tests come from; kind git"`
	Image      string            `yaml:"image,omitempty" json:"image,omitempty" jsonschema:"description=image of the build step"`
	Runtime    string            `yaml:"runtime,omitempty" json:"runtime,omitempty" jsonschema:"description=image of the gates: what the artifact needs to run and nothing else"`
	CPython    string            `yaml:"cpython,omitempty" json:"cpython,omitempty" jsonschema:"description=minor release of images/cpython.yaml that replaces the interpreter of both images"`
	Env        map[string]string `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=environment of the build step beside the image's"`
	Requires   Requirements      `yaml:"requires,omitempty" json:"requires,omitzero" jsonschema:"description=Python requirements (PEP 508); the lock resolves them to files"`
	Inputs     []Input           `yaml:"inputs,omitempty" json:"inputs,omitempty" jsonschema:"description=cells of other recipes whose wheels are installed before the build and beside the artifact"`
	Advisories []Advisory        `yaml:"advisories,omitempty" json:"advisories,omitempty" jsonschema:"description=published weaknesses of the source and what this recipe does about them"`
	Profile    []Variable        `yaml:"profile,omitempty" json:"profile,omitempty" jsonschema:"description=environment in which the artifact is to run; it is written beside it"`
	Nodes      string            `yaml:"nodes,omitempty" json:"nodes,omitempty" jsonschema:"description=what a node needs beside a glibc; plan prints it"`
	License    string            `yaml:"license,omitempty" json:"license,omitempty" jsonschema:"description=of the source as an SPDX expression; it stands in the SBOM"`
	Vendored   []Vendored        `yaml:"vendored,omitempty" json:"vendored,omitempty" jsonschema:"description=what the source carries of others and the build may compile in; it stands in the SBOM"`
	Expect     Expect            `yaml:"expect,omitempty" json:"expect,omitzero" jsonschema:"description=promises of the artifact; the gates check these and nothing else"`
}

// Requirements are Python requirements (PEP 508). The lock resolves them to files.
type Requirements struct {
	Build []string `yaml:"build,omitempty" json:"build,omitempty" jsonschema:"description=in the build step"`
	Run   []string `yaml:"run,omitempty" json:"run,omitempty" jsonschema:"description=beside the wheel in the gates' container"`
	Tests []string `yaml:"tests,omitempty" json:"tests,omitempty" jsonschema:"description=what upstream's tests need beside the run-time packages"`
}

// Vendored is the source of another project inside the source tree.
type Vendored struct {
	Name       string `yaml:"name" json:"name" jsonschema:"description=name of the other project"`
	Path       string `yaml:"path" json:"path" jsonschema:"description=folder in the source"`
	Repository string `yaml:"repository" json:"repository" jsonschema:"format=uri,description=its repository"`
	Commit     string `yaml:"commit" json:"commit" jsonschema:"description=40 hexadecimal digits"`
	License    string `yaml:"license" json:"license" jsonschema:"description=SPDX expression"`
}

// A Variant adds settings if its condition holds.
type Variant struct {
	When     Condition `yaml:"when" json:"when" jsonschema:"description=axes with constraints that must hold; settings for all cells stand outside of variants"`
	Settings `yaml:",inline" json:",inline"`
}

// Axis returns the axis with the given name.
func (r *Recipe) Axis(name string) (Axis, bool) { return find(r.Axes, name) }

// AxisNames returns the names of all axes in the order of the recipe.
func (r *Recipe) AxisNames() []string { return Names(r.Axes) }

// String returns the condition in words: python is 3.11, rocm is >=6.0.
func (c Condition) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, name+" is "+c[name])
	}
	return strings.Join(parts, ", ")
}

// Holds reports whether every constraint of c allows the value of its axis.
func (c Condition) Holds(axes map[string]string) bool {
	for name, text := range c {
		if !version.Allows(text, axes[name]) {
			return false
		}
	}
	return true
}

// For returns the settings for one point of the matrix: those of the recipe itself and
// of every variant whose condition holds. It fails if two of them state different
// values for one setting. Change no list or map of them: the recipe shares it.
func (r *Recipe) For(axes map[string]string) (Settings, error) {
	merged := reflect.ValueOf(r.Settings)
	for i, v := range r.Variants {
		if !v.When.Holds(axes) {
			continue
		}
		var m merger
		merged = m.value("", merged, reflect.ValueOf(v.Settings))
		if m.clash != "" {
			return Settings{}, diag.At(r.index.At(fmt.Sprintf("variants[%d]", i)), "two settings for %s where %v", m.clash, v.When).
				WithHint("a key has one value in a cell: remove it from the recipe, and set it in variants that together cover every cell")
		}
	}
	return merged.Interface().(Settings), nil
}

// An Advisory is a published vulnerability of the source. A cell is affected unless it
// gets the patch that closes it.
type Advisory struct {
	ID       string `yaml:"id" json:"id" jsonschema:"description=name in the list of CVEs (CVE-2024-10190)"`
	About    string `yaml:"about" json:"about" jsonschema:"description=who can do what; one sentence"`
	Source   string `yaml:"source" json:"source" jsonschema:"format=uri,description=where it is published"`
	MendedBy string `yaml:"mended-by" json:"mended-by" jsonschema:"description=name of the patch of this recipe that closes it"`
	Remains  string `yaml:"remains,omitempty" json:"remains,omitempty" jsonschema:"description=what stays open where the patch is applied"`
	Action   string `yaml:"action" json:"action" jsonschema:"description=what the user of a build without the patch has to do"`
}

// A Waiver accepts an artifact although one gate fails. It states a reason and an
// expiry date.
type Waiver struct {
	Gate    string `yaml:"gate" json:"gate" jsonschema:"description=name of the gate"`
	Because string `yaml:"because" json:"because" jsonschema:"description=why the failure is no reason to keep the artifact back"`
	Issue   string `yaml:"issue" json:"issue" jsonschema:"format=uri,description=where the failure is being mended"`
	Until   string `yaml:"until" json:"until" jsonschema:"format=date,description=last day on which the waiver holds (2026-12-31)"`
}

// Expired reports whether now, in UTC, is after the waiver's last day. An invalid day
// and the zero time count as expired.
func (w Waiver) Expired(now time.Time) bool {
	last, err := time.Parse(time.DateOnly, w.Until)
	return err != nil || now.IsZero() || !now.UTC().Before(last.AddDate(0, 0, 1))
}

// An Input names one cell of another recipe. Values of its axes may contain names in
// double braces. An axis without a value gets the one preferred by the other recipe.
type Input struct {
	Recipe string            `yaml:"recipe" json:"recipe" jsonschema:"description=name of the other recipe"`
	Axes   map[string]string `yaml:"axes,omitempty" json:"axes,omitempty" jsonschema:"description=values of its axes; together with its preferences they choose one cell"`
}

// A Variable is a setting of the artifact's run-time environment, with its reason.
type Variable struct {
	Name    string `yaml:"name" json:"name" jsonschema:"description=name of the variable"`
	Value   string `yaml:"value" json:"value" jsonschema:"description=its value; without characters that need quotes"`
	Because string `yaml:"because" json:"because" jsonschema:"description=the reason that is printed beside it"`
	Source  string `yaml:"source" json:"source" jsonschema:"format=uri,description=where the fact stands"`
}
