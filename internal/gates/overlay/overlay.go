// Package overlay runs programs on this host in an environment of the user with wheels
// installed over it. The environment itself does not change: the wheels lie in a
// temporary prefix whose packages come first. The programs are guests of the host.
package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/machine/guest"
)

// maxOutput bounds the kept output of a program. A log of NCCL for eight ranks has a
// few megabytes.
const maxOutput = 32 << 20

// An Overlay is an environment with wheels over it. It is a [gate.Box].
type Overlay struct {
	Python  string            // interpreter of the environment
	Dir     string            // empty directory for the prefix and the files of programs
	Guest   guest.Guest       // runs all programs
	Network bool              // programs use the network of this host
	Read    []string          // what programs may read, besides the environment and the system
	Env     map[string]string // for every program
	Timeout time.Duration     // of one program
	site    string
	own     []string // directories of the environment
}

// New installs the wheels without their dependencies, with the pip of the environment.
func New(ctx context.Context, o Overlay, wheels ...string) (*Overlay, error) {
	if err := o.find(ctx); err != nil {
		return nil, diag.Errorf(diag.Usage, "--python: %w", err).WithHint("name the interpreter of an environment with the framework")
	}
	args := []string{
		"-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "install", "--quiet", "--no-deps", "--no-index", "--no-compile",
		"--ignore-installed", "--no-warn-script-location", "--root-user-action=ignore", "--prefix", o.prefix(),
	}
	var names []string
	for _, path := range wheels {
		names = append(names, filepath.Base(path))
		copied := filepath.Join(o.wheels(), filepath.Base(path))
		if err := atomicfile.Copy(path, copied); err != nil {
			return nil, err
		}
		if err := os.Chmod(copied, 0o644); err != nil {
			return nil, err
		}
		args = append(args, copied)
	}
	dir, remove, err := o.room()
	if err != nil {
		return nil, err
	}
	defer remove()
	out, err := o.run(ctx, dir, o.Python, args, nil, "", o.prefix())
	if err == nil && out.Exit != 0 {
		err = fmt.Errorf("pip: exit %d: %s", out.Exit, tail(out.Output))
	}
	if err == nil {
		err = o.Guest.Take(o.prefix())
	}
	if err != nil {
		return nil, diag.Errorf(diag.Gate, "installing %s over %s: %w", strings.Join(names, " "), o.Python, err).
			WithHint("the interpreter must have pip and the release of Python that the wheel is made for")
	}
	// Debian's own Python installs below local.
	for _, pattern := range []string{"lib/python3*/site-packages", "local/lib/python3*/dist-packages", "lib64/python3*/site-packages"} {
		if found, _ := filepath.Glob(filepath.Join(o.prefix(), pattern)); len(found) > 0 && o.site == "" {
			o.site = found[0]
		}
	}
	if o.site == "" {
		return nil, diag.Errorf(diag.Gate, "installing %s over %s: pip installed no package", strings.Join(names, " "), o.Python)
	}
	return &o, nil
}

// where prints the interpreter and the directories that it reads modules and libraries from.
const where = `import json, os, sys
print(json.dumps([sys.executable, os.path.dirname(os.path.realpath(sys.executable)), sys.prefix, sys.exec_prefix, sys.base_prefix] + sys.path))`

// find asks the interpreter where its environment lies. The environment belongs to the
// user, who runs it without a guest, too.
func (o *Overlay) find(ctx context.Context) error {
	python, err := exec.LookPath(o.Python)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, python, "-I", "-c", where)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", python, err)
	}
	var said []string
	if err := json.Unmarshal(out, &said); err != nil || len(said) < 2 || !filepath.IsAbs(said[0]) {
		return fmt.Errorf("%s is not an interpreter of Python", python)
	}
	o.Python = said[0]
	dirs := said[1:]
	for name, value := range o.Env {
		if strings.HasSuffix(name, "PATH") { // a search path
			dirs = append(dirs, filepath.SplitList(value)...)
		}
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) {
			o.own = append(o.own, dir)
		}
	}
	for _, dir := range []string{o.prefix(), o.wheels()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(o.Dir, 0o711), o.Guest.Give(o.prefix()))
}

func (o Overlay) prefix() string { return filepath.Join(o.Dir, "prefix") }

func (o Overlay) wheels() string { return filepath.Join(o.Dir, "wheels") }

// room makes a directory for one program, with an empty home. A program leaves nothing
// for the next one.
func (o Overlay) room() (dir string, remove func(), err error) {
	room, err := os.MkdirTemp(o.Dir, "run-*")
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(room, "work")
	err = errors.Join(os.Chmod(room, 0o711), os.Mkdir(dir, 0o755), os.Mkdir(home(dir), 0o755))
	return dir, func() { os.RemoveAll(room) }, err
}

// Run runs a command of a gate in a new directory. Programs of the wheels come first in
// PATH, then those beside the interpreter.
func (o Overlay) Run(ctx context.Context, c gate.Command) (gate.Result, error) {
	dir, remove, err := o.room()
	if err != nil {
		return gate.Result{}, err
	}
	defer remove()
	for name, text := range c.Files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o644); err != nil {
			return gate.Result{}, err
		}
	}
	args := slices.Clone(c.Args)
	for i, a := range args {
		if a == "PYTHON" {
			args[i] = o.Python
		}
	}
	program, err := o.program(args[0])
	if err != nil {
		return gate.Result{}, err
	}
	return o.run(ctx, dir, program, args[1:], c.Env, c.Stdin)
}

// program returns the path of a program.
func (o Overlay) program(name string) (string, error) {
	for _, bin := range o.programs() {
		if path, err := exec.LookPath(filepath.Join(bin, name)); err == nil && !strings.Contains(name, "/") {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// programs lists the directories of programs, in the order of PATH.
func (o Overlay) programs() []string {
	return []string{filepath.Join(o.prefix(), "bin"), filepath.Join(o.prefix(), "local/bin"), filepath.Dir(o.Python)}
}

// environ returns the complete environment of a program. Variables of the user do not
// reach it unless Env has them.
func (o Overlay) environ(dir string, more map[string]string) []string {
	env := map[string]string{
		"PATH":                    strings.Join(o.programs(), ":") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME":                    home(dir),
		"USER":                    "nobody",
		"LC_ALL":                  "C.UTF-8",
		"PYTHONNOUSERSITE":        "1",
		"PYTHONDONTWRITEBYTECODE": "1",
		"PYTHONUNBUFFERED":        "1",
		"CUDA_DEVICE_ORDER":       "PCI_BUS_ID", // the order of nvidia-smi
		"OMPI_MCA_plm_rsh_agent":  "/bin/true",  // Open MPI 4 stops without ssh, which no rank here needs
	}
	if o.site != "" {
		env["PYTHONPATH"] = o.site
	}
	maps.Copy(env, o.Env)
	maps.Copy(env, more)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// home returns the home of the program in a directory.
func home(dir string) string { return filepath.Join(filepath.Dir(dir), "home") }

// run runs a program in its own process group, and ends all of the group with it. It may
// write to the directory, its home and the directories in more.
func (o Overlay) run(ctx context.Context, dir, program string, args []string, env map[string]string, stdin string, more ...string) (gate.Result, error) {
	ctx, stop := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it was killed after %v", o.Timeout))
	defer stop()
	written := append([]string{dir, home(dir)}, more...)
	for _, d := range written[:2] {
		if err := o.Guest.Give(d); err != nil {
			return gate.Result{}, err
		}
	}
	out := &guest.Output{Max: maxOutput}
	end, err := o.Guest.Run(ctx, guest.Program{
		Path: program, Args: args, Env: o.environ(dir, env), Dir: dir, Network: o.Network, Stdin: strings.NewReader(stdin),
		Read: slices.Concat(o.Read, o.own, []string{o.prefix(), o.wheels()}), Write: written,
	}, out, out)
	if err != nil {
		err = fmt.Errorf("%s: %w; it last printed: %s", filepath.Base(program), err, tail(out.String()))
	}
	return gate.Result{Exit: end.Exit, Output: out.String()}, err
}

// tail returns the last line, shortened.
func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return fmt.Sprintf("%.400s", lines[len(lines)-1])
}
