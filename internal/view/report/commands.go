package report

import (
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/base/shell"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
)

// A Command is a suggested command and its purpose.
type Command struct{ Why, Line string }

// Next returns the commands for the top of a page: those of the first cell that did not
// pass, or of the first cell if all passed.
func Next(run Run) []Command {
	if len(run.Cells) == 0 {
		return nil
	}
	first := slices.IndexFunc(run.Cells, func(c Cell) bool { return StatusOf(c) != Pass })
	return Commands(run.Cells[max(0, first)])
}

// Commands returns the suggested commands for a cell: how to install a passed cell, or how
// to look into another and build it again.
func Commands(c Cell) (all []Command) {
	if StatusOf(c) != Pass {
		if c.Error != nil && c.Error.Shell != "" {
			all = append(all, Command{"Open a shell where it failed", c.Error.Shell})
		}
		if c.Recipe != "" {
			all = append(all, Command{"Build it again after the fix", c.Again()})
		}
		return all
	}
	dir, install := installed(c)
	if install != nil {
		all = append(all, Command{"Install with uv", shell.Line(append([]string{"uv", "pip", "install"}, install...)...)})
	}
	if install != nil && !indexed(c) {
		all = append(all, Command{"Or with pip", shell.Line(append([]string{"pip", "install"}, install...)...)})
	}
	if dir != "" {
		all = append(all, Command{"Check the signatures", shell.Line("builder", "verify", dir)},
			Command{"Publish", shell.Line("builder", "publish", dir, "--to") + " DEST"})
	}
	return all
}

// Again returns the command that builds the cell.
func (c Cell) Again() string {
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
	return shell.Line(words...)
}

// installed returns the directory of a cell's artifact and the arguments with which pip
// and uv install it. It returns none if they cannot install it.
func installed(c Cell) (dir string, words []string) {
	if len(c.Artifacts) == 0 || c.Artifacts[0].Path == "" {
		return "", nil
	}
	first := c.Artifacts[0]
	dir = path.Dir(first.Path)
	if !strings.HasSuffix(first.Name, ".whl") {
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
func indexed(c Cell) bool {
	name, err := wheel.ParseName(c.Artifacts[0].Name)
	return err == nil && !strings.Contains(name.Version, "+")
}
