package index

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// pages rewrites the pages of the given projects, then the pages of the whole index.
func (x *Index) pages(all []Record, projects ...string) error {
	slices.SortFunc(all, byName)
	slices.Sort(projects)
	for _, project := range slices.Compact(projects) {
		of := slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return r.Project != project })
		if err := x.projectPages(project, of); err != nil {
			return failed(err, "writing the pages of %s", project)
		}
	}
	if err := x.rootPages(all); err != nil {
		return failed(err, "writing the pages of the index")
	}
	return nil
}

// wheels returns the records pip can install.
func wheels(all []Record) []Record {
	return slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return !r.IsWheel() })
}

// projectPages writes the pages of one project. It removes them if the project has no
// wheel.
func (x *Index) projectPages(project string, records []Record) error {
	records = wheels(records)
	dir := filepath.Join(x.dir, simpleDir, project)
	if len(records) == 0 {
		return errors.Join(remove(filepath.Join(dir, "index.html")), remove(filepath.Join(dir, "index.json")), remove(dir))
	}
	page, err := json.Marshal(newSimple(project, records))
	if err != nil {
		return err
	}
	if err := putBytes(filepath.Join(dir, "index.json"), page); err != nil {
		return err
	}
	return x.render(filepath.Join(dir, "index.html"), "project", map[string]any{"Project": project, "Records": records})
}

// rootPages writes the list of projects, the page for users and the list for builder.
func (x *Index) rootPages(all []Record) error {
	var projects []string
	for _, r := range wheels(all) {
		projects = append(projects, r.Project)
	}
	projects = slices.Compact(projects)
	root := simpleRoot{Meta: apiVersion}
	for _, p := range projects {
		root.Projects = append(root.Projects, named{p})
	}
	list, err := json.Marshal(root)
	if err != nil {
		return err
	}
	if all == nil {
		all = []Record{}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := putBytes(filepath.Join(x.dir, simpleDir, "index.json"), list); err != nil {
		return err
	}
	if err := x.render(filepath.Join(x.dir, simpleDir, "index.html"), "projects", projects); err != nil {
		return err
	}
	if err := putBytes(filepath.Join(x.dir, listFile), data); err != nil {
		return err
	}
	return x.render(filepath.Join(x.dir, "index.html"), "page", newPage(all))
}

// The JSON of PEP 691, with the names of PEP 714, and with the versions, sizes and
// times of PEP 700. The HTML page has sizes and times too: with a plain file server, uv
// reads them only there. There is no provenance according to PEP 740: it requires a
// certificate and a transparency log, and the statements of a cell are signed with
// keys.
type (
	meta struct {
		Version string `json:"api-version"`
	}
	named struct {
		Name string `json:"name"`
	}
	simpleRoot struct {
		Meta     meta    `json:"meta"`
		Projects []named `json:"projects"`
	}
	simple struct {
		Meta     meta         `json:"meta"`
		Name     string       `json:"name"`
		Versions []string     `json:"versions"`
		Files    []simpleFile `json:"files"`
	}
	simpleFile struct {
		Filename       string            `json:"filename"`
		URL            string            `json:"url"`
		Hashes         map[string]string `json:"hashes"`
		RequiresPython string            `json:"requires-python,omitempty"`
		CoreMetadata   map[string]string `json:"core-metadata"`
		Size           int64             `json:"size"`
		UploadTime     string            `json:"upload-time"`
		Yanked         string            `json:"yanked,omitempty"` // PEP 592: missing means false
	}
)

var apiVersion = meta{"1.1"}

func newSimple(project string, records []Record) simple {
	s := simple{Meta: apiVersion, Name: project}
	for _, r := range records {
		if !slices.Contains(s.Versions, r.Version) {
			s.Versions = append(s.Versions, r.Version)
		}
		s.Files = append(s.Files, simpleFile{
			r.Filename, r.href("../../"), map[string]string{"sha256": r.SHA256}, r.RequiresPython, map[string]string{"sha256": r.Metadata}, r.Size, r.UploadTime(), r.Yanked,
		})
	}
	return s
}

// UploadTime returns the time of publication in the format of PEP 700.
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
