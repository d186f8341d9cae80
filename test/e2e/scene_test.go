package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// scene is the setting of a fault: the tool, its own directory of results, and cells
// never built before.
type scene struct {
	*tool
	out   string
	site  string
	stamp string // unique value in the environment of this site's builds
	turns *int   // number of cells handed out
}

// cell returns the arguments of a cell never built before.
func (s *scene) cell(pace string) []string {
	*s.turns++
	return []string{"run", "steady", "--recipes", s.site, "--turn", strconv.Itoa(*s.turns), "--pace", pace, "--out", s.out}
}

// steady copies the recipe for the faults and adds a unique stamp to the environment of
// its builds, so that no earlier run of this test has built its cells.
func (b *tool) steady() (site, stamp string) {
	b.t.Helper()
	const turn = `TURN: "{{turn}}`
	stamp = strconv.FormatInt(time.Now().UnixNano(), 10)
	files := map[string]string{}
	for _, name := range []string{"images/steady.yaml", "recipes/steady.yaml", "recipes/steady.lock.json"} {
		data := must.Get(os.ReadFile(filepath.Join("testdata", "steady", name)))(b.t)
		files[name] = strings.Replace(string(data), turn, turn+" of "+stamp, 1)
	}
	return b.makeSite(files), stamp
}

// patience bounds the time to wait for output or the end of a process. It is long,
// because other lanes use the processors too.
const patience = 15 * time.Minute

// proc is a running process of the tool.
type proc struct {
	*scene
	cmd    *exec.Cmd
	said   *buffer
	ended  chan struct{}
	wanted []string
}

// buffer is written by a process and read by a test at the same time.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts the tool with additional variables and, as a terminal does, in its own
// process group.
func (s *scene) start(args []string, env ...string) *proc {
	s.t.Helper()
	p := &proc{scene: s, cmd: s.command(s.t.Context(), args...), said: &buffer{}, ended: make(chan struct{}), wanted: args}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(s.t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// until waits for words in the output.
func (p *proc) until(words string) *proc {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.said.String(), words); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			if strings.Contains(p.said.String(), words) {
				return p
			}
			p.t.Fatalf("it ended without saying %q\n%s", words, p.said)
		default:
		}
		must.Hold(p.t, !time.Now().After(deadline), "it does not say %q\n%s", words, p.said)
	}
	return p
}

// in waits for the start of a step.
func (p *proc) in(step string) *proc { return p.until(" " + step + " started") }

func (p *proc) signal(sig syscall.Signal) *proc {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Logf("%v: %v", sig, err) // it has ended
	}
	return p
}

// end waits for the end and returns the exit code, or -1 after a signal.
func (p *proc) end() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.cmd.Process.Kill()
		p.t.Fatalf("it does not end\n%s", p.said)
	}
	code := p.cmd.ProcessState.ExitCode()
	p.t.Logf("$ builder %s  # exit %d\n%s", strings.Join(p.wanted, " "), code, p.said)
	return code
}

// exits waits for the end and checks the exit code and the output.
func (p *proc) exits(code int, words ...string) {
	p.t.Helper()
	check.Same(p.t, "exit", code, p.end())
	contains(p.t, p.said.String(), words...)
}

// again runs the same command once more. Without the fault it succeeds.
func (p *proc) again(env ...string) {
	p.t.Helper()
	p.start(p.wanted, env...).exits(0)
}

// engineProcess returns the process of an engine or of its supervisor, or 0.
func (b *tool) engineProcess(program string) int {
	b.t.Helper()
	for pid := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		args := strings.Split(string(line), "\x00")
		i := 0
		if program == "engine.sh" {
			i = 1
		}
		if len(args) > i && strings.HasPrefix(args[i], filepath.Join(b.home, "engine")) && filepath.Base(args[i]) == program {
			if program != "engine.sh" || parentIsNot(pid, program, b.home) {
				return pid
			}
		}
	}
	return 0
}

// parentIsNot distinguishes the supervisor from its shells.
func parentIsNot(pid int, program, home string) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	line, _ := os.ReadFile("/proc/" + fields[1] + "/cmdline")
	return !strings.Contains(string(line), home) || !strings.Contains(string(line), program)
}

func (b *tool) killEngine(program string, sig syscall.Signal) {
	b.t.Helper()
	pid := b.engineProcess(program)
	must.Hold(b.t, pid != 0, "no process %s of %s", program, b.home)
	must.Succeed(b.t, syscall.Kill(pid, sig))
}

// processes returns the processes of this host with their environments, where readable.
func processes() map[int]string {
	all := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			env, _ := os.ReadFile(filepath.Join(dir, "environ"))
			all[pid] = string(env)
		}
	}
	return all
}

// sound checks the conditions after every fault: the store is intact, run.json is true,
// and nothing is left behind.
func (s *scene) sound() {
	s.t.Helper()
	s.nothingLeft()
	verify := s.run("store", "verify")
	check.That(s.t, verify.code == 0, "the store is not whole after it")
	s.trueReport()
}

// nothingLeft waits until the processes of builds, the clients of the engine and the
// mounts have ended, and fails the test if any remain.
func (s *scene) nothingLeft() {
	s.t.Helper()
	var left []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		left = nil
		for pid, env := range processes() {
			build := s.builds(env)
			client := strings.Contains(env, "BUILDER_SESSION=") && strings.Contains(env, "BUILDER_HOME="+s.home+"\x00")
			if build || client { // of this test: the host may run others
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				left = append(left, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			}
		}
		if len(left) == 0 {
			break
		}
	}
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, s.home) && !strings.Contains(line, "tmpfs "+s.home) {
			left = append(left, "mount "+line)
		}
	}
	for _, one := range left {
		s.t.Errorf("left behind: %s", one)
	}
}

// builds reports whether an environment belongs to a build of this scene.
func (s *scene) builds(env string) bool {
	return strings.Contains(env, "BUILDER_DIST=") && strings.Contains(env, " of "+s.stamp+"\x00")
}

// trueReport checks every cell with a good status in run.json: its wheel exists with
// its digest, and it has verdicts of gates.
func (s *scene) trueReport() {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, s.out, "run.json"))
	if err != nil {
		return // no run has started
	}
	var f runFile
	err = json.Unmarshal(data, &f)
	check.That(s.t, err == nil, "run.json is half: %v", err)
	for _, c := range f.Cells {
		for _, v := range c.Verdicts {
			check.That(s.t, v.Status == "pass" && v.Evidence != "", "%s: a verdict that nobody reached: %+v", c.ID, v)
		}
		if c.Status != "pass" {
			continue
		}
		check.That(s.t, len(c.Verdicts) >= 5 && len(c.Artifacts) != 0,
			"%s: passed with %d verdicts and %d artifacts", c.ID, len(c.Verdicts), len(c.Artifacts))
		for _, a := range c.Artifacts {
			check.Same(s.t, fmt.Sprintf("%s has sha256", a.Path), a.SHA256, digest(s.abs(a.Path)))
		}
	}
}

func (s *scene) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.dir, path)
}

func digest(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// damage overwrites the middle half of the chosen files below a directory of the home,
// whatever their permissions. It fails the test if there are none.
func (b *tool) damage(dir string, chosen func(path string) bool) {
	b.t.Helper()
	n := 0
	filepath.WalkDir(filepath.Join(b.home, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() == 0 || !chosen(path) {
			return nil
		}
		f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(b.t)
		defer f.Close()
		must.Get(f.WriteAt(bytes.Repeat([]byte{0xA5}, int(info.Size()/2+1)), info.Size()/4))(b.t)
		n++
		return nil
	})
	must.Hold(b.t, n != 0, "nothing to damage below %s", dir)
}

// limited mounts a file system of a fixed size over a directory. enlarge changes the
// size.
func (s *scene) limited(dir, size string) (enlarge func(size string)) {
	s.t.Helper()
	must.Succeed(s.t, os.MkdirAll(dir, 0o755))
	mount := func(options string) {
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
		must.Hold(s.t, err == nil, "mount: %v: %s", err, out)
	}
	mount("size=" + size)
	s.t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return func(size string) { mount("remount,size=" + size) }
}
