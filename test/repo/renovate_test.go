package repo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/images"
	"builder/internal/gates/gate"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// renovate is the part of renovate.json that our own managers need.
type renovate struct {
	CustomManagers []struct {
		ManagerFilePatterns       []string
		MatchStrings              []string
		AutoReplaceStringTemplate string
	}
	PackageRules []struct {
		MatchPackageNames []string
		ExtractVersion    string
		Versioning        string
	}
}

func readRenovate(t *testing.T) renovate {
	t.Helper()
	data := must.Get(os.ReadFile("renovate.json"))(t)
	var r renovate
	if err := json.Unmarshal(data, &r); err != nil || len(r.CustomManagers) != 2 {
		t.Fatalf("renovate.json has %d managers of its own, want that of recipes and that of images: %v", len(r.CustomManagers), err)
	}
	return r
}

// managed returns the names of the files that a manager reads.
func managed(t *testing.T, patterns []string) []string {
	t.Helper()
	var names []string
	for _, folder := range []string{"recipes", "images", "profiles"} {
		files := must.Get(filepath.Glob(folder + "/*"))(t)
		for _, file := range files {
			for _, p := range patterns {
				if regexp.MustCompile(strings.Trim(p, "/")).MatchString(file) {
					names = append(names, file)
				}
			}
		}
	}
	return names
}

// namedGroups returns the named groups of a match.
func namedGroups(re *regexp.Regexp, match []string) map[string]string {
	named := map[string]string{}
	for i, name := range re.SubexpNames() {
		if name != "" {
			named[name] = match[i]
		}
	}
	return named
}

// axisLine matches an axis and what follows its values.
var axisLine = regexp.MustCompile(`  - name: ([a-z]+)\n    about: .*\n    values: \[.*(\].*)\n`)

// TestRenovateReadsRecipes: each axis whose values an upstream releases names that
// upstream and the newest value. Renovate's replacement adds a value to the recipe.
func TestRenovateReadsRecipes(t *testing.T) {
	atRoot(t)
	manager := readRenovate(t).CustomManagers[0]
	match := regexp.MustCompile(manager.MatchStrings[0])
	all := must.Get(recipe.Load(recipes.FS, "recipes", gate.Promises()))(t)
	files := managed(t, manager.ManagerFilePatterns)
	check.That(t, len(files) == len(all), "the manager reads %v of %d recipes", files, len(all))
	upstreams := map[string]string{}
	for _, r := range all {
		maps.Copy(upstreams, upstreamsOf(r))
	}
	for _, r := range all {
		file := "recipes/" + r.Name + ".yaml"
		text := must.Get(os.ReadFile(file))(t)
		read := map[string]string{} // axis to its upstream
		for _, at := range axisLine.FindAllStringSubmatchIndex(string(text), -1) {
			axis := string(text[at[2]:at[3]])
			found := match.FindStringSubmatch(string(text[at[4]:at[5]]))
			if found == nil {
				continue
			}
			g := namedGroups(match, found)
			read[axis] = g["datasource"] + " " + g["depName"]
			best := newest(r, axis)
			check.That(t, g["currentValue"] == best, "%s: Renovate reads %s %s, and the newest is %s", file, axis, g["currentValue"], best)
			next := strings.NewReplacer("{{{newValue}}}", "99", "{{{datasource}}}", g["datasource"], "{{{depName}}}", g["depName"]).Replace(manager.AutoReplaceStringTemplate)
			changed, err := recipe.Parse(file, slices.Concat(text[:at[4]], []byte(next), text[at[5]:]), gate.Promises())
			if err != nil {
				t.Errorf("%s: a new %s gives no recipe: %v", file, axis, err)
				continue
			}
			before, _ := r.Axis(axis)
			if after, _ := changed.Axis(axis); !slices.Equal(after.Values, append(slices.Clone(before.Values), "99")) {
				t.Errorf("%s: a new %s leads to %v", file, axis, after.Values)
			}
		}
		check.Same(t, fmt.Sprintf("%s: Renovate reads %d of", file, len(read)), len(read), strings.Count(string(text), "# renovate: "))
		for _, a := range r.Axes {
			if want := upstreams[r.Name+" "+a.Name]; want != "" && read[a.Name] != want {
				t.Errorf("%s: Renovate asks %q for %s, and the recipe takes it from %q", file, read[a.Name], a.Name, want)
			}
		}
		for _, s := range settingsOf(r) {
			for _, in := range s.Inputs {
				axis, own := strings.CutPrefix(in.Axes["version"], "{{")
				axis = strings.TrimSuffix(axis, "}}")
				if want := upstreams[in.Recipe+" version"]; own && read[axis] != want {
					t.Errorf("%s: Renovate asks %q for %s, and %q for the recipe %s", file, read[axis], axis, want, in.Recipe)
				}
			}
		}
	}
}

// settingsOf returns the settings of the recipe and of all its variants.
func settingsOf(r *recipe.Recipe) []recipe.Settings {
	all := []recipe.Settings{r.Settings}
	for _, v := range r.Variants {
		all = append(all, v.Settings)
	}
	return all
}

var exactValue = regexp.MustCompile(`^([a-z0-9-]+)==\{\{([a-z]+)\}\}$`)

// upstreamsOf returns the upstreams that a recipe names, by recipe and axis: the project
// or the tag of its source, and requirements on an exact version.
func upstreamsOf(r *recipe.Recipe) map[string]string {
	all := map[string]string{}
	for _, s := range settingsOf(r) {
		for _, text := range slices.Concat(s.Requires.Build, s.Requires.Run) {
			if m := exactValue.FindStringSubmatch(text); m != nil {
				all[r.Name+" "+m[2]] = "pypi " + m[1]
			}
		}
		switch {
		case s.From.Kind == recipe.Sdist, s.From.Kind == recipe.Wheel:
			all[r.Name+" version"] = "pypi " + r.Source.Project
		case strings.Contains(s.From.Tag, "{{version}}"):
			all[r.Name+" version"] = "github-tags " + strings.TrimPrefix(s.From.Repository, "https://github.com/")
		}
	}
	return all
}

// newest returns the newest value of an axis.
func newest(r *recipe.Recipe, name string) string {
	axis, _ := r.Axis(name)
	return slices.MaxFunc(axis.Values, func(a, b string) int {
		v, err1 := version.Parse(a)
		w, err2 := version.Parse(b)
		if err1 != nil || err2 != nil {
			return strings.Compare(strings.TrimPrefix(a, "none"), strings.TrimPrefix(b, "none"))
		}
		return version.Compare(v, w)
	})
}

// TestRenovateReadsTags: the tag of each version of a recipe gives the version.
func TestRenovateReadsTags(t *testing.T) {
	atRoot(t)
	config := readRenovate(t)
	all := must.Get(recipe.Load(recipes.FS, "recipes", gate.Promises()))(t)
	tags := 0
	for _, r := range all {
		axis, _ := r.Axis("version")
		for _, s := range settingsOf(r) {
			if !strings.Contains(s.From.Tag, "{{version}}") {
				continue
			}
			project := strings.TrimPrefix(s.From.Repository, "https://github.com/")
			for _, v := range axis.Values {
				tags++
				tag, value := strings.ReplaceAll(s.From.Tag, "{{version}}", v), ""
				for _, rule := range config.PackageRules {
					if !slices.Contains(rule.MatchPackageNames, project) {
						continue
					}
					if m := regexp.MustCompile(rule.ExtractVersion).FindStringSubmatch(tag); len(m) == 2 {
						value = m[1]
					}
					if form, ok := strings.CutPrefix(rule.Versioning, "regex:"); ok && regexp.MustCompile(form).MatchString(tag) {
						value = tag
					}
				}
				check.That(t, value == v, "Renovate reads %q from the tag %s of %s", value, tag, project)
			}
		}
	}
	check.That(t, tags >= 20, "only %d tags were compared", tags)
}

// TestRenovateReadsImages: Renovate finds the registry, the tag and the digest of each
// image that is pinned by digest.
func TestRenovateReadsImages(t *testing.T) {
	atRoot(t)
	manager := readRenovate(t).CustomManagers[1]
	entry, row := regexp.MustCompile(manager.MatchStrings[0]), regexp.MustCompile(manager.MatchStrings[1])
	var read, want []string
	for _, file := range managed(t, manager.ManagerFilePatterns) {
		text, err := os.ReadFile(file)
		must.Hold(t, err == nil && path.Dir(file) == "images", "%s: %v", file, err)
		for _, outer := range entry.FindAllStringSubmatch(string(text), -1) {
			for _, inner := range row.FindAllStringSubmatch(outer[0], -1) {
				g := namedGroups(entry, outer)
				maps.Copy(g, namedGroups(row, inner))
				read = append(read, fmt.Sprintf("%s:%s%s@%s", g["depName"], g["currentValue"], g["suffix"], g["currentDigest"]))
			}
		}
	}
	all := must.Get(image.Load(images.FS, "images"))(t)
	for _, img := range all {
		if img.Digest != "" {
			want = append(want, img.Registry+"@"+img.Digest)
		}
	}
	slices.Sort(read)
	slices.Sort(want)
	check.That(t, slices.Equal(read, want) && len(want) >= 20,
		"Renovate reads\n%s\nand the images are\n%s", strings.Join(read, "\n"), strings.Join(want, "\n"))
}
