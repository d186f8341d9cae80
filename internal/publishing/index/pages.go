package index

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/size"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// pages rewrites the pages of a project, then the pages of the whole index.
func (x *Index) pages(all []Record, project string) error {
	slices.SortFunc(all, byName)
	of := slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return r.Project != project })
	if err := x.projectPage(filepath.Join(x.dir, simpleDir, project), project, of); err != nil {
		return err
	}
	return x.rootPages(all)
}

// wheels returns the records pip can install.
func wheels(all []Record) []Record {
	return slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return !r.IsWheel() })
}

// projectPage writes the page of one project in dir. It removes it if the project has no
// wheel.
func (x *Index) projectPage(dir, project string, records []Record) error {
	records = wheels(records)
	if len(records) == 0 {
		return os.RemoveAll(dir)
	}
	return x.render(filepath.Join(dir, "index.html"), "project", map[string]any{"Project": project, "Records": records})
}

// rootPages writes the list of projects, the page for users and the list for builder.
func (x *Index) rootPages(all []Record) error {
	var projects []string
	for _, r := range wheels(all) {
		projects = append(projects, r.Project)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := x.render(filepath.Join(x.dir, simpleDir, "index.html"), "projects", slices.Compact(projects)); err != nil {
		return err
	}
	if err := putBytes(filepath.Join(x.dir, listFile), data); err != nil {
		return err
	}
	var list []listed // the newest first
	for _, r := range all {
		list = append(list, listed{r, apart(r, all)})
	}
	slices.SortStableFunc(list, func(a, b listed) int { return b.Published.Compare(a.Published) })
	return x.render(filepath.Join(x.dir, "index.html"), "page", list)
}

// UploadTime returns the time of publication in the format of PEP 700. uv reads it from
// the HTML page of a plain file server.
func (r Record) UploadTime() string { return r.Published.UTC().Format("2006-01-02T15:04:05Z") }

// href returns the address of a wheel relative to a page. It escapes a plus sign,
// because some object stores read it as a space.
func (r Record) href(up string) string { return r.hrefOf(r.Filename, up) }

func (r Record) hrefOf(file, up string) string {
	escaped := (&url.URL{Path: filesDir + "/" + r.Project + "/" + file}).EscapedPath()
	return up + strings.ReplaceAll(escaped, "+", "%2B")
}

//go:embed pages.tmpl
var pagesText string

var templates = template.Must(template.New("pages").Funcs(template.FuncMap{
	"href": func(r Record, up string) template.URL { return template.URL(r.href(up)) }, //nolint:gosec // made of checked names
}).Parse(pagesText))

func (x *Index) render(to, name string, data any) error {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	return putBytes(to, b.Bytes())
}

// A listed record is one on the page for users.
type listed struct {
	Record
	Apart []string // the axes by which it differs from others of its project, with its values
}

// apart returns the axes that not all records of a project share, with the values of one.
func apart(r Record, all []Record) (axes []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Axes)) {
		if slices.ContainsFunc(all, func(other Record) bool { return other.Project == r.Project && other.Axes[name] != r.Axes[name] }) {
			axes = append(axes, name+" "+r.Axes[name])
		}
	}
	return axes
}

// SizeText returns the size for people.
func (r Record) SizeText() string { return size.Text(r.Size) }

// Passed returns the number of passed gates and the number of all gates.
func (r Record) Passed() string {
	passed := 0
	for _, status := range r.Gates {
		if status == "pass" {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, len(r.Gates))
}

// Pin returns the requirement for exactly this wheel, without its digest.
func (r Record) Pin() string { return r.file().Pin() }

// Requirement returns the line of a requirements file for exactly this wheel.
func (r Record) Requirement() string { return r.file().Exact() }

func (r Record) file() pypi.File {
	return pypi.File{Project: r.Project, Version: r.Version, SHA256: r.SHA256}
}

// Requirements returns the address of the cell's requirements file from the root of the
// index, or "" if the cell has none. The file pins the packages tested with the wheel.
func (r Record) Requirements() string {
	want := r.Cell + lock.RequirementsEnd
	if !slices.ContainsFunc(r.Beside, func(f File) bool { return f.Path == want }) {
		return ""
	}
	return r.hrefOf(want, "")
}

// Statements lists the files beside the wheel about its build and its tests, with
// addresses from the root of the index.
func (r Record) Statements() []statement {
	var all []statement
	for _, f := range r.Beside {
		if strings.HasPrefix(f.Path, r.Filename+".") {
			all = append(all, statement{path.Base(f.Path), r.hrefOf(f.Path, "")})
		}
	}
	return all
}

// A statement is one of these files.
type statement struct{ Name, Href string }
