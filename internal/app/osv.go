package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/files/wheel"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Weakness is a published weakness of a pinned Python package.
type Weakness struct {
	Recipe  string `json:"recipe"`
	Project string `json:"project"`
	Version string `json:"version"`
	ID      string `json:"id"`
	Alias   string `json:"alias,omitempty"` // name in the list of CVEs
	Summary string `json:"summary,omitempty"`
	Fixed   string `json:"fixed,omitempty"` // first version without it
}

// osvEntry holds the used parts of an entry in the format of OSV.
type osvEntry struct {
	ID        string   `json:"id"`
	Aliases   []string `json:"aliases"`
	Summary   string   `json:"summary"`
	Withdrawn string   `json:"withdrawn"`
	Affected  []struct {
		Package  struct{ Ecosystem, Name string }
		Versions []string
		Ranges   []struct {
			Type   string
			Events []map[string]string
		}
	} `json:"affected"`
}

// Bounds of OSV data: the whole database of the Python index is a tenth of it.
const (
	maxOSVFile  = 16 << 20
	maxOSVFiles = 500_000
)

// readOSV reads one entry, a list of entries, or every *.json of a directory.
func readOSV(place string) ([]osvEntry, error) {
	var files []string
	err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (path == place || strings.HasSuffix(path, ".json")) {
			files = append(files, path)
		}
		if len(files) > maxOSVFiles {
			return errors.New("it holds too many files")
		}
		return err
	})
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--osv: %w", err).WithHint("name a file or directory in the format of OSV")
	}
	var all []osvEntry
	var errs []error
	for _, file := range files {
		data, err := regular.ReadFollowed(file, maxOSVFile)
		if err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "--osv: %w", err))
			continue
		}
		var list []osvEntry
		var one osvEntry
		if json.Unmarshal(data, &list) != nil {
			if err := json.Unmarshal(data, &one); err != nil || one.ID == "" {
				errs = append(errs, diag.Errorf(diag.Usage, "--osv: %s is no entry in the format of OSV", file))
				continue
			}
			list = []osvEntry{one}
		}
		all = append(all, list...)
	}
	if len(files) == 0 {
		errs = append(errs, diag.Errorf(diag.Usage, "--osv: %s holds no *.json", place))
	}
	return all, errors.Join(errs...)
}

// concerns reports whether the entry concerns a version of a Python project, and the
// first version without the weakness.
func (e osvEntry) concerns(project, text string) (fixed string, _ bool) {
	v, err := version.Parse(text)
	for _, a := range e.Affected {
		if a.Package.Ecosystem != "PyPI" || wheel.NormalName(a.Package.Name) != wheel.NormalName(project) {
			continue
		}
		listed := slices.Contains(a.Versions, text)
		for _, r := range a.Ranges {
			if r.Type != "ECOSYSTEM" || err != nil {
				continue
			}
			// The last event not after the version decides. Events are in order.
			inside, closed := false, ""
			for _, event := range r.Events {
				switch {
				case event["introduced"] == "0" || event["introduced"] != "" && !newer(event["introduced"], v.String()):
					inside, closed = true, ""
				case event["fixed"] != "" && inside && closed == "":
					closed = event["fixed"]
					inside = newer(closed, v.String())
				case event["last_affected"] != "" && inside:
					inside = !newer(v.String(), event["last_affected"])
				}
			}
			if inside {
				return closed, true
			}
		}
		if listed {
			return "", true
		}
	}
	return "", false
}

// weaknesses returns the published weaknesses of the Python packages and sources that
// the locks of recipes pin.
func (s *Session) weaknesses(place string, rs []*recipe.Recipe) ([]Weakness, error) {
	entries, err := readOSV(place)
	if err != nil {
		return nil, err
	}
	about := map[string][]osvEntry{}
	for _, e := range entries {
		for _, a := range e.Affected {
			name := wheel.NormalName(a.Package.Name)
			if e.Withdrawn == "" && !slices.ContainsFunc(about[name], func(x osvEntry) bool { return x.ID == e.ID }) {
				about[name] = append(about[name], e)
			}
		}
	}
	all := []Weakness{}
	for _, r := range rs {
		f, err := s.Catalogue.Locks(s.Home).Read(r.Name)
		if err != nil {
			return nil, err
		}
		pinned := map[[2]string]bool{}
		for _, p := range f.Sources {
			pinned[[2]string{p.Project, p.Version}] = true
		}
		for _, p := range f.Python {
			for _, file := range p.Files {
				pinned[[2]string{file.Project, file.Version}] = true
			}
		}
		for p := range pinned {
			for _, e := range about[wheel.NormalName(p[0])] {
				if fixed, ok := e.concerns(p[0], p[1]); ok {
					all = append(all, Weakness{r.Name, p[0], p[1], e.ID, e.cve(), e.Summary, fixed})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Weakness) int {
		return strings.Compare(a.Recipe+" "+a.Project+" "+a.Version+" "+a.ID, b.Recipe+" "+b.Project+" "+b.Version+" "+b.ID)
	})
	return all, nil
}

func (e osvEntry) cve() string {
	i := slices.IndexFunc(e.Aliases, func(alias string) bool { return strings.HasPrefix(alias, "CVE-") })
	if i < 0 || e.Aliases[i] == e.ID {
		return ""
	}
	return e.Aliases[i]
}
