package lock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"builder/internal/plan/image"
)

// Steps to which a change is attributed, in their order. Gates covers all steps after
// the build, and fields that no step reads.
const (
	stepImage    = "image"
	stepPackages = "packages"
	stepSource   = "source"
	stepPatch    = "patch"
	stepBuild    = "build"
	stepGates    = "gates"
)

// Steps lists the steps of changes in the order in which a run executes them.
func Steps() []string {
	return []string{stepImage, stepPackages, stepSource, stepPatch, stepBuild, stepGates}
}

// A Change is one difference between two entries, with the first step that reads the
// changed field. A run repeats this step and all later ones.
type Change struct {
	Step string `json:"step"`
	What string `json:"what"`
	Was  string `json:"was,omitempty"` // empty if the field is new
	Is   string `json:"is,omitempty"`  // empty if the field is gone
}

// Diff lists the differences between two entries, in the order of [Steps]. It is empty
// if and only if the keys are equal.
func Diff(old, new Entry) []Change {
	was, is := partsOf(old), partsOf(new)
	var changes []Change
	places := slices.Concat(slices.Collect(maps.Keys(was.all)), slices.Collect(maps.Keys(is.all)))
	slices.SortFunc(places, place.compare)
	for _, at := range slices.Compact(places) {
		before, after := was.all[at], is.all[at]
		if !bytes.Equal(before.value, after.value) {
			changes = append(changes, at.change(before, after))
		}
	}
	changes = append(changes, reordered(was, is)...)
	if len(changes) == 0 && old.Key() != new.Key() {
		changes = append(changes, Change{stepGates, "form of the entry", old.Key()[:12], new.Key()[:12]})
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(order(a.Step), order(b.Step)) })
	return changes
}

// First returns the first step of the changes, or "" if there are none.
func First(changes []Change) string {
	if len(changes) == 0 {
		return ""
	}
	return slices.MinFunc(changes, func(a, b Change) int { return cmp.Compare(order(a.Step), order(b.Step)) }).Step
}

func order(step string) int { return slices.Index(Steps(), step) }

// parts is an entry divided into the units shown to users.
type parts struct {
	all   map[place]part
	lists map[place][]string // names of items in order, by list
}

// place identifies a part: the first step that reads it, and its name.
type place struct{ step, what string }

// part is the printed form of a unit and its whole value as JSON.
type part struct {
	show  string
	value []byte
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(order(p.step), order(q.step)), cmp.Compare(p.what, q.what))
}

// change describes how a part differs. If both printed forms are equal, it shows the
// whole values.
func (p place) change(was, is part) Change {
	if was.show == is.show {
		was.show, is.show = string(was.value), string(is.value)
	}
	return Change{p.step, p.what, was.show, is.show}
}

// reordered returns, for each list, the first two items in a different order.
func reordered(was, is parts) []Change {
	var changes []Change
	for _, at := range slices.SortedFunc(maps.Keys(was.lists), place.compare) {
		before := intersect(was.lists[at], is.lists[at])
		after := intersect(is.lists[at], was.lists[at])
		for i := range before {
			if before[i] != after[i] {
				changes = append(changes, Change{
					at.step, "order of the " + at.what,
					before[i] + " before " + after[i], after[i] + " before " + before[i],
				})
				break
			}
		}
	}
	return changes
}

// intersect returns the items of a that are also in b.
func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(item string) bool { return !slices.Contains(b, item) })
}

func partsOf(e Entry) parts {
	p := parts{map[place]part{}, map[place][]string{}}
	p.add(stepImage, "scripts of the pipeline", short(e.Pipeline), e.Pipeline)
	p.image(e.Image, "", stepImage, stepPackages)
	for _, in := range e.Inputs {
		p.item(stepPackages, "inputs", "input "+in.Recipe, in.ID+" "+short(in.Key), in)
	}
	p.add(stepSource, "source "+e.Source.Project, pinned(e.Source.File), e.Source)
	p.table(stepPatch, "name %s of the cell", e.Facts)
	for _, patch := range e.Patches {
		p.item(stepPatch, "patches", "patch "+patch.Name, short(patch.Digest()), patch)
	}
	p.table(stepBuild, "variable %s", e.Env)
	p.add(stepBuild, "build script", digest(e.Script), e.Script)
	p.add(stepBuild, "SOURCE_DATE_EPOCH", fmt.Sprint(e.Epoch), e.Epoch)
	for _, v := range e.Profile {
		p.item(stepGates, "profile", "run-time variable "+v.Name, literal(v.Value), v)
	}
	p.add(stepGates, "homepage", e.Homepage, e.Homepage)
	p.add(stepGates, "license of the source", e.License, e.License)
	for _, v := range e.Vendored {
		p.item(stepGates, "vendored sources", "vendored source "+v.Path, short(v.Commit), v)
	}
	if e.Memory != 0 {
		p.add(stepGates, "memory of the build", fmt.Sprintf("%d bytes", e.Memory), e.Memory) // no step reads it
	}
	for _, a := range e.Advisories {
		p.item(stepGates, "advisories", "advisory "+a.ID, "mended by "+a.MendedBy, a) // no step reads it
	}
	if e.Tests.SHA256 != "" {
		p.add(stepGates, "source "+e.Tests.Project, pinned(e.Tests.File), e.Tests)
	}
	for _, w := range e.TestWheels {
		p.item(stepGates, "wheels of the tests", "tests: wheel "+w.Project, pinned(w), w)
	}
	p.fields(stepGates, "expectation %s", e.Expect)
	p.image(e.Runtime, "run-time image: ", stepGates, stepGates)
	p.table(stepGates, "axis %s", e.Axes)
	p.add(stepGates, "id", e.ID, e.ID)
	p.add(stepGates, "recipe", e.Recipe, e.Recipe)
	p.add(stepGates, "schema", fmt.Sprint(e.Schema), e.Schema)
	return p
}

// image adds the parts of a base image. prefix distinguishes the build image from the
// run-time image. base and python are the steps that read the base and the interpreter.
func (p parts) image(img Image, prefix, base, python string) {
	pin := img.Pin
	p.add(base, prefix+"image", strings.TrimSpace(pin.Name+" "+short(pin.Digest)), []string{pin.Name, pin.Registry, pin.Digest})
	p.debian(pin.Debian, prefix, base)
	for _, d := range pin.Packages {
		p.item(base, prefix+"packages", prefix+"package "+d.Name, d.Version+" "+short(d.SHA256), d)
	}
	if pin.Date != "" {
		p.add(stepGates, prefix+"date of the package index", pin.Date, pin.Date) // no step reads it
	}
	if img.Setup != "" {
		p.add(base, prefix+"setup", digest(img.Setup), img.Setup)
	}
	p.table(base, prefix+"variable %s of the image", img.Env)
	for name, fact := range img.Provides {
		p.add(base, prefix+"fact "+name, literal(fact.Is), fact)
	}
	if img.CPython != nil {
		p.add(base, prefix+"CPython", img.CPython.Version+" "+short(img.CPython.SHA256), img.CPython)
	}
	p.add(python, prefix+"Python", img.Python, []any{img.Python, img.Site})
	for _, w := range img.Wheels {
		p.item(python, prefix+"wheels", prefix+"wheel "+w.Project, pinned(w), w)
	}
}

// debian adds the request, in addition to the packages to which it was resolved.
func (p parts) debian(asked *image.Debian, prefix, step string) {
	if asked == nil {
		return
	}
	p.add(step, prefix+"packages from Debian", "yes", true)
	for _, s := range asked.Suites {
		p.item(step, prefix+"suites", prefix+"suite "+s.Name, strings.Join(s.Components, " "), s)
	}
	for _, name := range asked.Packages {
		p.item(step, prefix+"requests", prefix+"request for "+name, "requested", name)
	}
}

// add adds a part. A second part with the same name gets a number.
func (p parts) add(step, what, show string, value any) place {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("lock: %s is not JSON: %v", what, err)) // a field of an entry is always valid
	}
	at := place{step, what}
	for n := 2; ; n++ {
		if _, taken := p.all[at]; !taken {
			break
		}
		at.what = fmt.Sprintf("%s (%d)", what, n)
	}
	p.all[at] = part{show, data}
	return at
}

// item adds a part that is an item of a list.
func (p parts) item(step, list, what, show string, value any) {
	at := p.add(step, what, show, value)
	key := place{step, list}
	p.lists[key] = append(p.lists[key], at.what)
}

func (p parts) table(step, format string, values map[string]string) {
	for name, value := range values {
		p.add(step, fmt.Sprintf(format, name), literal(value), value)
	}
}

// fields adds every non-empty field of a struct under its JSON name.
func (p parts) fields(step, format string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("lock: %v is not JSON: %v", value, err)) // a field of an entry is always valid
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		panic(fmt.Sprintf("lock: %s is not an object: %v", data, err))
	}
	for name, raw := range all {
		p.add(step, fmt.Sprintf(format, name), string(raw), raw)
	}
}

// literal returns a short text unchanged, and the digest of any other.
func literal(text string) string {
	if text == "" || len(text) > 100 || strings.ContainsFunc(text, unicode.IsControl) {
		return digest(text)
	}
	return text
}

// digest returns the short digest of a text.
func digest(text string) string {
	if text == "" {
		return "empty"
	}
	return short(sumOf([]byte(text)))
}

// short returns the first 12 digits of a digest, for display.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(12, len(digest))]
}
