package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// host is a box on this machine. The dynamic linker and the libraries are real, and the
// wheel's files are in a separate Python environment.
type host struct{ python, site, work string }

func newHost(t *testing.T) host {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("needs python3 on x86_64")
	}
	// A shim of pyenv leads elsewhere: only the interpreter itself makes an environment.
	real, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("python3 does not start")
	}
	python = strings.TrimSpace(string(real))
	env := t.TempDir()
	h := host{python: filepath.Join(env, "bin", "python"), work: t.TempDir()}
	err = errors.Join(os.Mkdir(filepath.Dir(h.python), 0o755), os.Symlink(python, h.python))
	must.Succeed(t, err)
	write(t, filepath.Join(env, "pyvenv.cfg"), []byte("home = "+filepath.Dir(python)+"\n")) // the only relevant file of a venv
	site := must.Get(exec.Command(h.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output())(t)
	h.site = strings.TrimSpace(string(site))
	return h
}

// Run implements [Box].
func (h host) Run(ctx context.Context, c Command) (Result, error) {
	for name, text := range c.Files {
		if err := os.WriteFile(filepath.Join(h.work, name), []byte(text), 0o600); err != nil {
			return Result{}, err
		}
	}
	args := slices.Clone(c.Args)
	if args[0] == "PYTHON" {
		args[0] = h.python
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// This machine is no container: others write to its files.
	stdin := strings.Replace(c.Stdin, `"search":["/"]`, fmt.Sprintf(`"search":[%q,%q]`, filepath.Dir(filepath.Dir(h.python)), h.work), 1)
	cmd.Dir, cmd.Stdin, cmd.Env = h.work, strings.NewReader(stdin), append(os.Environ(), "HOME="+h.work)
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	var died *exec.ExitError
	if err != nil && !errors.As(err, &died) {
		return Result{}, err
	}
	exit := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit = 128 + int(status.Signal())
	}
	return Result{Exit: exit, Output: string(out)}, nil
}

// install writes the specimen's libraries to their paths in the wheel.
func (h host) install(t *testing.T, s *specimen) {
	t.Helper()
	for name, l := range s.libraries {
		at := filepath.Join(h.site, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(at), 0o755))
		write(t, at, l.Bytes())
	}
}

// ask installs a specimen and runs one gate on this machine.
func (h host) ask(t *testing.T, g Gate, s *specimen) verdict.Verdict {
	t.Helper()
	h.install(t, s)
	subject := s.subject(t)
	subject.Box = h
	return g.Check(context.Background(), subject)
}

func TestTheLinkerOfThisHost(t *testing.T) {
	t.Parallel()
	const helper = "horovod/lib/libhelper.so.1"
	h := newHost(t)
	for name, c := range map[string]struct {
		needed  []string
		symbols []elftest.Symbol
		want    verdict.Status
		says    string
	}{
		"all found": {
			[]string{"libm.so.6", "libc.so.6"},
			append(elftest.From("libm.so.6", "GLIBC_2.2.5", "cos", "sin"), elftest.From("libc.so.6", "GLIBC_2.2.5", "memcmp", "getenv", "puts")...),
			verdict.Pass, "all 5 symbols found, 3 in libc.so.6, 2 in libm.so.6",
		},
		"no such symbol":          {[]string{"libc.so.6"}, elftest.Named("memcmp", "no_such_symbol"), verdict.Fail, "requires 1 symbols missing from all its libraries: no_such_symbol"},
		"no such version":         {[]string{"libm.so.6"}, elftest.From("libm.so.6", "GLIBC_2.999", "cos"), verdict.Fail, "cos@GLIBC_2.999"},
		"no such library":         {[]string{"libc.so.6", "libnothing.so.9"}, elftest.Named("memcmp"), verdict.Fail, "needs libnothing.so.9, which cannot be loaded: libnothing.so.9: cannot open shared object"},
		"of a package":            {[]string{"libhelper.so.1"}, append(elftest.Named("helped"), elftest.From("libhelper.so.1", "HELP_1", "versioned")...), verdict.Pass, "all 2 symbols found, 2 in libhelper.so.1"},
		"of no package":           {[]string{"libhelper.so.1"}, elftest.From("libhelper.so.1", "HELP_2", "versioned"), verdict.Fail, "versioned@HELP_2"},
		"of the interpreter":      {[]string{"libc.so.6"}, elftest.Named("PyErr_SetString", "_Py_NoneStruct"), verdict.Pass, "all 2 symbols found"},
		"loaded but not needed":   {[]string{"libc.so.6"}, elftest.Named("helped"), verdict.Fail, "requires 1 symbols missing from all its libraries: helped"},
		"weak, and lacked by all": {[]string{"libc.so.6"}, append(elftest.Named("memcmp"), elftest.Symbol{Name: "_ITM_registerTMCloneTable", Weak: true}), verdict.Pass, "all 1 symbols found"},
		"weak, and missing":       {[]string{"libc.so.6"}, append(elftest.Named("memcmp"), elftest.Symbol{Name: "no_such_symbol", Weak: true}), verdict.Fail, "requires 1 symbols missing from all its libraries: no_such_symbol"},
	} {
		s := horovodROCm()
		s.library().Needed, s.library().Undefined = c.needed, c.symbols
		s.libraries[helper] = &elftest.Library{
			Soname: "libhelper.so.1", Exported: []elftest.Symbol{{Name: "helped"}, {Name: "versioned", Version: "HELP_1"}},
		}
		judged(t, h.ask(t, elfSymbols, s), c.want, c.says, name)
	}
}

// Machine code of the functions called by nccl-load.

// givesVersion stores a number through its argument and returns 0.
func givesVersion(number uint32) elftest.Symbol {
	code := binary.LittleEndian.AppendUint32([]byte{0xc7, 0x07}, number)
	return elftest.Symbol{Name: "ncclGetVersion", Code: append(code, 0x31, 0xc0, 0xc3)}
}

// givesText returns the address of the text after the code.
func givesText(text string) elftest.Symbol {
	return elftest.Symbol{Name: "ncclGetErrorString", Code: append([]byte{0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3}, text+"\x00"...)}
}

func TestLoadingOnThisHost(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	text := givesText("invalid argument")
	for name, c := range map[string]struct {
		needed   []string
		exported []elftest.Symbol
		want     verdict.Status
		says     string
	}{
		"good":          {[]string{"libc.so.6"}, []elftest.Symbol{givesVersion(22907), text}, verdict.Pass, `loads; reports 2.29.7+cuda13.0 and 22907; error 4 is "invalid argument"`},
		"other release": {nil, []elftest.Symbol{givesVersion(22304), text}, verdict.Fail, "ncclGetVersion returns 22304, which is 2.23.4"},
		"an error":      {nil, []elftest.Symbol{{Name: "ncclGetVersion", Code: []byte{0xb8, 3, 0, 0, 0, 0xc3}}, text}, verdict.Fail, "ncclGetVersion returns 0, which is no release, with status 3"},
		"no text":       {nil, []elftest.Symbol{givesVersion(22907), {Name: "ncclGetErrorString"}}, verdict.Fail, "ncclGetErrorString returns nothing"},
		"a crash":       {nil, []elftest.Symbol{{Name: "ncclGetVersion", Code: []byte{0x0f, 0x0b}}, text}, verdict.Fail, "cannot be loaded: exit 132 with 0 reports"},
		"no function":   {nil, []elftest.Symbol{text}, verdict.Fail, "undefined symbol: ncclGetVersion"},
		"no library":    {[]string{"libnothing.so.9"}, []elftest.Symbol{givesVersion(22907), text}, verdict.Fail, "OSError: libnothing.so.9: cannot open shared object file"},
	} {
		s := ncclVerbs()
		s.library().Needed, s.library().Undefined, s.library().Exported = c.needed, nil, c.exported
		judged(t, h.ask(t, ncclLoad, s), c.want, c.says, name)
	}
}

// What a module changes is named, and what a framework changes of its own is not.
func TestChangesOfAProcess(t *testing.T) {
	t.Parallel()
	const program = `
import os, random, signal, sys, types
import shutil, textwrap
import process
since = process.differences("horovod.torch")
print(since())
shutil.copy = lambda *of: None
textwrap.dedent = lambda text: text
textwrap.dedent.__module__ = textwrap.TextWrapper.fill.__module__ = "horovod.torch"
textwrap.TextWrapper.wrap = textwrap.dedent
os.environ["GPUS"] = ""
os.umask(0o77)
random.seed(0)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
sys.path.append("/x")
print(since())
`
	out, err := newHost(t).Run(t.Context(), Command{Args: []string{"PYTHON", "-c", program}, Files: files("process.py")})
	const want = "[]\n['random', 'textwrap.TextWrapper.wrap', 'textwrap.dedent', 'the environment variable GPUS', 'the environment variable GPUS of C', 'the handler of signal 10', 'the mask of new files', 'the order of imports', 'the signals SigIgn']\n"
	check.That(t, err == nil && out.Output == want, "%q, %v", out.Output, err)
}
