package reportpage

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"builder/internal/base/shell"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
	"builder/internal/plan/stack"
	"builder/internal/view/report"
)

// maxReasons bounds the reasons at the top of the page. Each cell shows its own
// reasons.
const maxReasons = 20

// maxLogs bounds the links to logs of a reason.
const maxLogs = 3

// reference is a link. Without an address it is plain text.
type reference struct{ Text, Address string }

// reason explains why cells did not pass, with links to the cells and logs.
type reason struct {
	report.Reason
	Cells []reference // in this page
	Logs  []reference // existing logs of the first cells
}

// newReasons adds links to cells and logs to the reasons of a run.
func (v view) newReasons() []reason {
	shown := map[string]cell{}
	for _, c := range v.Cells {
		shown[c.ID] = c
	}
	var all []reason
	reasons := report.Reasons(v.Run)
	for _, r := range reasons[:min(maxReasons, len(reasons))] {
		one := reason{Reason: r}
		for _, id := range r.Cells {
			one.Cells = append(one.Cells, reference{id, "#" + shown[id].Anchor})
			for _, s := range failedSteps(shown[id].Cell) {
				log, explains := v.Log(s), r.Status == report.Errored || s.Name == gateStep+r.What
				if explains && log.Address != "" && len(one.Logs) < maxLogs {
					one.Logs = append(one.Logs, reference{path.Base(log.Text), log.Address})
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// command is a suggested command and its purpose.
type command struct {
	Why   string
	Lines []string
}

// commandsOf returns the suggested commands for a cell: how to install a passed cell,
// or how to build another again.
func commandsOf(c report.Cell) []command {
	if report.StatusOf(c) != report.Pass {
		if c.Recipe == "" {
			return nil
		}
		words := []string{"builder", "run", c.Recipe}
		if c.Recipes != "" {
			words = append(words, "--recipes", c.Recipes)
		}
		for _, name := range slices.Sorted(maps.Keys(c.Axes)) {
			words = append(words, "--"+name, c.Axes[name])
		}
		for _, value := range c.Set {
			words = append(words, "--set", value)
		}
		return []command{{Why: "Build it again after the fix", Lines: []string{shell.Line(words...)}}}
	}
	dir, install := installed(c)
	var all []command
	if install != nil {
		all = append(all, command{Why: "Install with uv", Lines: []string{shell.Line(append([]string{"uv", "pip", "install"}, install...)...)}})
	}
	if install != nil && !indexed(c) {
		all = append(all, command{Why: "Or with pip", Lines: []string{shell.Line(append([]string{"pip", "install"}, install...)...)}})
	}
	if dir != "" {
		all = append(all, command{Why: "Check the signatures, and publish", Lines: []string{
			shell.Line("builder", "verify", dir), shell.Line("builder", "publish", dir, "--to") + " DEST",
		}})
	}
	return all
}

// next returns the commands for the top of the page: those of the first cell that did not
// pass, or of the first cell if all passed.
func next(cells []cell) []command {
	if len(cells) == 0 {
		return nil
	}
	first := slices.IndexFunc(cells, func(c cell) bool { return c.Status != report.Pass })
	return cells[max(0, first)].Commands
}

// installed returns the directory of a cell's artifact and the arguments with which pip
// and uv install it. It returns none if they cannot install it.
func installed(c report.Cell) (dir string, words []string) {
	if len(c.Artifacts) == 0 || c.Artifacts[0].Path == "" {
		return "", nil
	}
	first := c.Artifacts[0]
	dir = path.Dir(first.Path)
	switch {
	case strings.HasPrefix(c.ID, stack.Prefix):
		return dir, []string{"--no-index", "--no-deps", "--require-hashes",
			"--find-links", path.Join(dir, stack.Folder), "-r", path.Join(dir, stack.Requirements)}
	case !strings.HasSuffix(first.Name, ".whl"):
		return dir, nil
	}
	for _, a := range c.Artifacts[1:] {
		if strings.HasSuffix(a.Name, lock.RequirementsEnd) && a.Path != "" {
			return dir, []string{"--require-hashes", "--find-links", dir, "-r", a.Path}
		}
	}
	return dir, []string{first.Path}
}

// indexed reports whether an index may have a wheel of the same version as a cell: one
// without a local version. pip then prefers that one if its platform tag is more specific,
// and refuses it for its digest. uv compares the digests first. The first lines of the
// requirements file have a line for pip.
func indexed(c report.Cell) bool {
	name, err := wheel.ParseName(c.Artifacts[0].Name)
	return err == nil && !strings.Contains(name.Version, "+")
}

// Log returns a reference to the log of a step.
func (v view) Log(s report.Step) reference { return v.o.linked(s.Log, path.Join(v.o.LogDir, s.Log)) }

// File returns a reference to an artifact.
func (v view) File(a artifact.Artifact) reference { return v.o.linked(a.Name, a.Path) }

// linked returns a reference to a file of the run. It is a link if the file exists.
func (o Options) linked(text, file string) reference {
	if text == "" || o.Link == nil {
		return reference{Text: text}
	}
	at := o.Link(file)
	if at == "" {
		return reference{Text: text}
	}
	return reference{text, (&url.URL{Path: at}).String()}
}
