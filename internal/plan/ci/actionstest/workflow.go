// Package actionstest executes a workflow of GitHub Actions on this host, for
// tests: its jobs in order, a matrix as its jobs, every run: block by bash with the
// files and variables that Actions gives it, and every expression by an evaluator
// of the forms that our workflows use. A form, a key or an action that it does not
// know is an error, never a guess.
//
// The actions of others are stood in for: artifacts and caches are copies of
// directories that lose what Actions loses (the mode of files, hidden files), a
// checkout is a copy, and logging in to a registry does nothing. Actions of our
// own are executed as workflows are.
package actionstest

import (
	"os"
	"path/filepath"

	"builder/internal/base/decode"
)

// Workflow is a file of .github/workflows that others can call.
type Workflow struct {
	Name        string            `yaml:"name"`
	On          triggers          `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Defaults    defaults          `yaml:"defaults"`
	Concurrency concurrency       `yaml:"concurrency"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type triggers struct {
	Call     call `yaml:"workflow_call"`
	Dispatch call `yaml:"workflow_dispatch"`
}

type call struct {
	Inputs  map[string]input  `yaml:"inputs"`
	Secrets map[string]secret `yaml:"secrets"`
}

type input struct {
	Description string `yaml:"description"`
	Type        string `yaml:"type"`
	Required    bool   `yaml:"required"`
	Default     string `yaml:"default"`
}

type secret struct {
	Description string `yaml:"description"`
}

type defaults struct {
	Run struct {
		Shell string `yaml:"shell"`
	} `yaml:"run"`
}

type concurrency struct {
	Group  string `yaml:"group"`
	Cancel string `yaml:"cancel-in-progress"`
}

type job struct {
	Name        string            `yaml:"name"`
	Needs       []string          `yaml:"needs"`
	If          string            `yaml:"if"`
	RunsOn      string            `yaml:"runs-on"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Outputs     map[string]string `yaml:"outputs"`
	Strategy    strategy          `yaml:"strategy"`
	Env         map[string]string `yaml:"env"`
	Steps       []step            `yaml:"steps"`
}

type strategy struct {
	FailFast bool   `yaml:"fail-fast"`
	Matrix   string `yaml:"matrix"`
}

type step struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Env   map[string]string `yaml:"env"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
}

// composite is an action.yml.
type composite struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Inputs      map[string]input  `yaml:"inputs"`
	Outputs     map[string]output `yaml:"outputs"`
	Runs        struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

type output struct {
	Description string `yaml:"description"`
	Value       string `yaml:"value"`
}

// Load reads a workflow.
func Load(path string) (Workflow, error) {
	var w Workflow
	return w, load(path, &w)
}

func load(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return decode.YAML(filepath.Base(path), data, into)
}
