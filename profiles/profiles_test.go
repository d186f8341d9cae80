package profiles_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/plan/matrix"
	"builder/internal/plan/profile"
	"builder/profiles"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipetest.Schema(&profile.Profile{}))
}

func TestEveryFileIsEmbeddedAndRead(t *testing.T) {
	for name, text := range golden.CheckEmbedded(t, profiles.FS, "testdata") {
		switch {
		case name == "schema.json":
		case !strings.HasSuffix(name, ".yaml"):
			t.Errorf("%s is neither a profile nor the schema", name)
		case !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=schema.json\n")):
			t.Errorf("%s does not tell editors of its schema", name)
		}
	}
}

func load(t *testing.T) []*profile.Profile {
	t.Helper()
	all, err := profile.Load(profiles.FS, "profiles")
	must.Hold(t, err == nil && len(all) >= 3, "%d profiles, %v", len(all), err)
	return all
}

// openRLHF returns the profile with the most dependencies.
func openRLHF(t *testing.T) *profile.Profile {
	t.Helper()
	all := load(t)
	i := slices.IndexFunc(all, func(p *profile.Profile) bool { return p.Name == "openrlhf" })
	must.Hold(t, i >= 0, "no profile is called openrlhf")
	return all[i]
}

// axis returns the values of an axis.
func axis(t *testing.T, p *profile.Profile, name string) []string {
	t.Helper()
	for _, a := range p.Axes {
		if a.Name == name {
			return a.Values
		}
	}
	t.Fatalf("profile %s has no axis %s", p.Name, name)
	return nil
}

// each visits every valid combination of a profile. A fixed axis has one value.
func each(t *testing.T, p *profile.Profile, fixed matrix.Filter, visit func(profile.Environment)) {
	t.Helper()
	filter := matrix.Filter{}
	for _, name := range p.AxisNames() {
		filter[name] = "all"
		if value, ok := fixed[name]; ok {
			filter[name] = "=" + value
		}
	}
	all, err := p.All(filter)
	must.Hold(t, err == nil && len(all) != 0, "%s: %d combinations with %v, %v", p.Name, len(all), fixed, err)
	for _, e := range all {
		visit(e)
	}
}

// Every combination has an environment: no two settings contradict each other.
func TestEveryCombination(t *testing.T) {
	for _, p := range load(t) {
		used := map[string]bool{}
		fixed := matrix.Filter{}
		if p.Name == "openrlhf" {
			fixed["rocm"] = "6.1" // it affects one rule only
		}
		each(t, p, fixed, func(e profile.Environment) {
			for _, v := range slices.Concat(e.Variables, e.Options) {
				used[v.Name+"="+v.Value] = true
				check.That(t, v.Because != "" && v.Source != "" && v.Known != "", "%s: %s has no reason", p.Name, v.Name)
			}
			check.That(t, strings.HasSuffix(e.Lines(), "\n"), "%s: %q", p.Name, e.Lines())
		})
		for _, s := range p.Settings {
			check.That(t, used[s.Env+s.Option+"="+s.Value], "%s: no combination has %s%s=%s", p.Name, s.Env, s.Option, s.Value)
		}
	}
}

// A release holds the recorded facts of a released wheel.
type release struct {
	Version string            `json:"version"`
	Wheel   string            `json:"wheel"`
	SHA256  string            `json:"sha256"`
	Ray     string            `json:"ray,omitempty"`     // the version pinned by OpenRLHF
	Options map[string]string `json:"options,omitempty"` // options of train_ppo_ray about weights and GPUs, with defaults
	NoSet   []string          `json:"noset"`             // known variables RAY_EXPERIMENTAL_NOSET_… for GPUs
}

// recorded returns the recorded releases of a project.
func recorded(t *testing.T, project string) []release {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", project+".json"))
	must.Succeed(t, err)
	var all []release
	err = json.Unmarshal(data, &all)
	must.Hold(t, err == nil && len(all) >= 15, "%d releases, %v", len(all), err)
	return all
}

func versions(all []release) []string {
	var list []string
	for _, r := range all {
		list = append(list, r.Version)
	}
	return list
}

// The axes list exactly the recorded releases.
func TestAxesAreReleasesThatWereRead(t *testing.T) {
	p := openRLHF(t)
	for name, project := range map[string]string{"version": "openrlhf", "ray": "ray"} {
		onAxis, read := slices.Clone(axis(t, p, name)), versions(recorded(t, project))
		slices.Sort(onAxis)
		slices.Sort(read)
		check.That(t, slices.Equal(onAxis, read), "the axis %s has %v, and recorded are %v", name, onAxis, read)
	}
}

// The options exist in the parser of the release: none is invented, and a renamed one
// has the name of its release.
func TestOptionsAreThoseOfTheRelease(t *testing.T) {
	p := openRLHF(t)
	for _, r := range recorded(t, "openrlhf") {
		each(t, p, matrix.Filter{"version": r.Version, "rocm": "6.1", "ray": "2.44.1"}, func(e profile.Environment) {
			check.That(t, len(e.Options) == 1, "%s: options %v", r.Version, e.Options)
			for _, o := range e.Options {
				if _, ok := r.Options[o.Name]; !ok {
					t.Errorf("OpenRLHF %s has no option %s, only %v", r.Version, o.Name, slices.Sorted(maps.Keys(r.Options)))
				}
			}
		})
	}
}

// The profile pairs OpenRLHF with the Ray pinned by its wheel.
func TestPinsAreThoseOfTheRelease(t *testing.T) {
	p := openRLHF(t)
	for _, r := range recorded(t, "openrlhf") {
		e, err := p.Resolve(matrix.Filter{"version": "=" + r.Version}, nil)
		if err != nil || e.Axes["ray"] != r.Ray || len(e.Notes) > 1 {
			t.Errorf("OpenRLHF %s pins Ray %s, the profile has %s with notes %v, %v", r.Version, r.Ray, e.Axes["ray"], e.Notes, err)
		}
	}
}

// amd lists the variables that keep Ray from choosing AMD GPUs.
var amd = []string{"RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES", "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES"}

// The profile sets the variable that this Ray reads and this OpenRLHF checks. It
// refuses any other variable.
func TestVariablesAreThoseOfTheRelease(t *testing.T) {
	p := openRLHF(t)
	knows := map[string][]string{}
	for _, r := range recorded(t, "openrlhf") {
		knows[r.Version] = r.NoSet
	}
	for _, ray := range recorded(t, "ray") {
		each(t, p, matrix.Filter{"ray": ray.Version, "rocm": "6.1", "sync": "gloo"}, func(e profile.Environment) {
			var set []string
			for _, v := range e.Variables {
				set = append(set, v.Name)
			}
			want := ray.NoSet
			if e.Axes["ray-patch"] == "on" {
				want = nil
			}
			check.That(t, slices.Equal(set, want), "Ray %s reads %v, the profile at %v sets %v", ray.Version, ray.NoSet, e.Axes, set)
			for _, name := range set {
				check.That(t, slices.Contains(knows[e.Axes["version"]], name), "OpenRLHF %s does not look for %s", e.Axes["version"], name)
			}
		})
		for _, name := range amd {
			_, err := p.Resolve(matrix.Filter{"ray": "=" + ray.Version, "ray-patch": "off"}, []profile.Asked{{Name: name, Value: "1"}})
			check.Same(t, fmt.Sprintf("Ray %s reads %s", ray.Version, name), err == nil, slices.Contains(ray.NoSet, name))
		}
	}
}
