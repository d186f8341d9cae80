package index

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	return x.render(filepath.Join(x.dir, "index.html"), "page", newestFirst(all))
}

func newestFirst(all []Record) []listed {
	var list []listed
	for _, r := range all {
		list = append(list, listed{r, apart(r, all)})
	}
	slices.SortStableFunc(list, func(a, b listed) int { return b.Published.Compare(a.Published) })
	return list
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
