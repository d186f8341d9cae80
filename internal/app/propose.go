package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/catalogue"
	"builder/internal/base/atomicfile"
	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
)

// A Proposal is a directory for --recipes with the new values.
type Proposal struct {
	Directory string     `json:"directory"`
	Values    []Proposed `json:"values"`  // in the order of dependencies
	Patches   []string   `json:"patches"` // results of the audit, and ranges that were closed
	Cells     []string   `json:"cells"`   // a condensed matrix to build: arguments of `builder run`
}

// A Proposed is a value in a proposal.
type Proposed struct {
	Recipe string `json:"recipe"`
	Axis   string `json:"axis"`
	Value  string `json:"value"`
	Pins   int    `json:"pins"`            // pins added to the lock
	Lacks  string `json:"lacks,omitempty"` // why cells cannot be locked: the value was taken back
}

// ReportFile is the name of the report in the directory of a proposal.
const ReportFile = "updates.json"

// propose writes the recipes with the values that have cells, locks their cells, audits
// the patches and chooses cells to build.
func (s *Session) propose(ctx context.Context, r UpdatesRequest, all Updates) (*Proposal, error) {
	p := &Proposal{Directory: r.Propose, Values: []Proposed{}, Patches: []string{}, Cells: []string{}}
	values := slices.DeleteFunc(slices.Clone(all.New), func(n Update) bool { return n.Cells == 0 })
	var names []string
	for _, n := range values {
		if !slices.Contains(names, n.Recipe) {
			names = append(names, n.Recipe)
		}
	}
	if err := s.copySite(r.Propose, names); err != nil {
		return nil, err
	}
	for _, n := range values {
		v, cells, err := s.proposeValue(ctx, r, n)
		if err != nil {
			return nil, err
		}
		p.Values, p.Cells = append(p.Values, v), append(p.Cells, cells...)
	}
	next, err := s.at(r)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found, err := next.auditProposal(ctx, name)
		if err != nil {
			found = append(found, name+": not audited: "+err.Error())
		}
		p.Patches = append(p.Patches, found...)
	}
	all.Proposal = p
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return p, atomicfile.Write(filepath.Join(r.Propose, ReportFile), append(data, '\n'))
}

// at returns the session with the catalogue of the proposal.
func (s *Session) at(r UpdatesRequest) (*Session, error) {
	cat, err := catalogue.Load(r.Propose, r.Taken)
	if err != nil {
		return nil, fmt.Errorf("reading the proposal: %w", err)
	}
	return &Session{Version: s.Version, Home: s.Home, Catalogue: cat, Sources: s.Sources, Engines: s.Engines, Keys: s.Keys, Note: s.Note}, nil
}

// proposeValue adds a value to its recipe and locks its cells. If they cannot be locked
// it takes the value back. It returns a condensed matrix of the cells.
func (s *Session) proposeValue(ctx context.Context, r UpdatesRequest, n Update) (v Proposed, cells []string, err error) {
	v = Proposed{Recipe: n.Recipe, Axis: n.Axis, Value: n.Value}
	file := filepath.Join(r.Propose, "recipes", n.Recipe+".yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		return v, nil, err
	}
	if err := addValue(file, n); err != nil {
		return v, nil, err
	}
	next, err := s.at(r)
	if err != nil {
		return v, nil, err
	}
	of, err := recipe.Find(next.Catalogue.Recipes, n.Recipe)
	if err != nil {
		return v, nil, err
	}
	filter := matrix.Filter{n.Axis: n.Value}
	done, err := Lock(ctx, next, LockRequest{Selection: Selection{Recipe: of, Filter: OpenAxes(of, filter, true)}, Every: true})
	if ctx.Err() != nil {
		return v, nil, context.Cause(ctx)
	}
	if faults := diag.All(err); len(faults) > 0 {
		v.Lacks = faults[0].Error()
		return v, nil, atomicfile.Write(file, before)
	}
	v.Pins = len(done.Changes)
	jobs, err := Jobs(next.Catalogue, MatrixRequest{Recipes: []*recipe.Recipe{of}, Filter: filter, All: true, Condense: true}, s.Note)
	for _, j := range jobs {
		cells = append(cells, strings.Join(j.Flags, " "))
	}
	return v, cells, err
}

// copySite writes the recipes, with their locks and patches, into a new directory.
// Those of the session's site replace the built-in ones.
func (s *Session) copySite(dir string, names []string) error {
	built := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known(name) != nil })
	if _, err := NewSite(dir, built); err != nil {
		return err
	}
	if s.Catalogue.Site == "" {
		return nil
	}
	site := os.DirFS(s.Catalogue.Site)
	patterns := []string{"images/*.yaml"}
	for _, name := range names {
		patterns = append(patterns, "recipes/"+name+".yaml", "recipes/"+name+".lock.json", "patches/"+name+"/*")
	}
	for _, pattern := range patterns {
		files, err := fs.Glob(site, pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := fs.ReadFile(site, file)
			to := filepath.Join(dir, filepath.FromSlash(file))
			if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755)); err == nil {
				err = os.WriteFile(to, data, 0o644)
			}
			if err != nil {
				return fmt.Errorf("copying %s: %w", file, err)
			}
		}
	}
	return nil
}

// addValue adds a value to the axis in the file of a recipe, as the least preferred
// one, and the date of its source if the recipe states dates. It keeps all other text.
func addValue(file string, n Update) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r, err := recipe.Parse(file, data)
	if err != nil {
		return err
	}
	index, err := decode.Positions(file, data)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	axis := slices.IndexFunc(r.Axes, func(a recipe.Axis) bool { return a.Name == n.Axis })
	if axis < 0 {
		return diag.Errorf(diag.Usage, "%s: there is no axis %s", file, n.Axis)
	}
	last := len(r.Axes[axis].Values) - 1
	at := index.At("axes[%d].values[%d]", axis, last)
	written := fmt.Sprintf("%q", r.Axes[axis].Values[last])
	line := lines[at.Line-1]
	if !strings.HasPrefix(line[at.Column-1:], written) {
		return diag.At(at, "the value cannot be added: the last value of the axis is not in double quotes")
	}
	end := at.Column - 1 + len(written)
	if before := line[:at.Column-1]; strings.TrimSpace(before) == "-" {
		lines[at.Line-1] = line + before + fmt.Sprintf("%q\n", n.Value)
	} else {
		lines[at.Line-1] = line[:end] + fmt.Sprintf(", %q", n.Value) + line[end:]
	}
	if n.Axis == "version" && len(r.Source.Released) > 0 && n.Dated {
		first := len(lines)
		for v := range r.Source.Released {
			first = min(first, index.At("source.released.%s", v).Line)
		}
		entry := fmt.Sprintf("%q: %q", n.Value, n.Released)
		if line := lines[first-1]; strings.Contains(line, "released: {") {
			lines[first-1] = strings.Replace(line, "released: {", "released: {"+entry+", ", 1)
		} else {
			lines[first-1] = line[:len(line)-len(strings.TrimLeft(line, " "))] + entry + "\n" + line
		}
	}
	text := []byte(strings.Join(lines, ""))
	if _, err := recipe.Parse(file, text); err != nil {
		return fmt.Errorf("adding %s %s: %w", n.Axis, n.Value, err)
	}
	return atomicfile.Write(file, text)
}

// auditProposal applies the patches of a recipe to all its trees. It closes the range of
// a patch that upstream merged.
func (s *Session) auditProposal(ctx context.Context, name string) (results []string, err error) {
	of, err := recipe.Find(s.Catalogue.Recipes, name)
	if err != nil {
		return nil, err
	}
	if len(s.Catalogue.Patches[name]) == 0 {
		return nil, nil
	}
	reports, err := Audit(ctx, s, []*recipe.Recipe{of}, true)
	report, audited := reports[name]
	if !audited {
		return nil, err
	}
	merged := map[string]string{} // patch to the first version that contains it
	for _, f := range report.Findings {
		results = append(results, name+"/"+f.String()+": "+f.Remedy)
		if have := merged[f.Patch]; f.Merged != "" && (have == "" || newer(have, f.Merged)) {
			merged[f.Patch] = f.Merged
		}
	}
	for _, row := range report.Rows {
		if since := merged[row.Patch]; since != "" && !appliesSince(row.States, since) {
			if err := s.closeRange(name, row.Patch, since); err != nil {
				return results, err
			}
			results = append(results, fmt.Sprintf("%s/%s: closed: merged: \">=%s\"", name, row.Patch, since))
		}
	}
	if len(results) == 0 {
		results = append(results, name+": every patch does what it says")
	}
	return results, nil
}

// appliesSince reports whether a patch still applies to a version or a later one.
func appliesSince(states map[string]patch.State, since string) bool {
	for v, state := range states {
		if (state == patch.Applied || state == patch.AppliedAtOffset) && !newer(since, v) {
			return true
		}
	}
	return false
}

// closeRange states in the file of a patch since which version upstream has it.
func (s *Session) closeRange(recipe, name, since string) error {
	files, err := filepath.Glob(filepath.Join(s.Catalogue.Site, "patches", recipe, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var p patch.Patch
		if err := decode.YAML(file, data, &p); err != nil {
			return err
		}
		if p.Name != name {
			continue
		}
		before, after, ok := strings.Cut(string(data), "\nedits:")
		if !ok || p.Merged != "" {
			return diag.Errorf(diag.Patch, "%s: state merged: \">=%s\" by hand: the file states %q", file, since, p.Merged)
		}
		return atomicfile.Write(file, fmt.Appendf(nil, "%s\nmerged: \">=%s\"\nedits:%s", before, since, after))
	}
	return diag.Errorf(diag.Patch, "no file of %s holds the patch %s", recipe, name)
}
