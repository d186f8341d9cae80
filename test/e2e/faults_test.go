package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// fault is a failure before or during a run of the tool.
type fault struct {
	name  string
	exit  string // exit code of the affected run
	after string // the state afterwards and the behaviour of the next run
	tell  func(*scene)
}

// faults run in this order, with the real engine and real wheels.
var faults = []fault{
	{
		"the client is killed while the engine makes the image", "-", "the next run continues with the finished part of the image",
		killClient("image"),
	},
	{
		"the client is killed in the build step", "-", "the engine ends the build; the next run starts the step again",
		killClient("build"),
	},
	{
		"the client is killed while a step hangs", "-", "the engine ends the step within 30 seconds, because no client waits for it",
		killedHung,
	},
	{
		"the client is killed while gates run", "-", "no verdict is recorded; the next run takes the wheel from the engine's cache",
		killClient("gate elf-symbols"),
	},
	{"the client is killed during a download", "-", "finished files are kept; the next run continues the partial file", killedInFetch},
	{"Ctrl-C in the build step", "130", "no new work starts, the build ends, and run.json is complete", interrupt(syscall.SIGINT)},
	{
		"Ctrl-C twice", "130, or killed by the signal", "the second Ctrl-C ends the process at once; the engine ends the build",
		interruptTwice,
	},
	{"SIGTERM in the build step", "130", "same as Ctrl-C", interrupt(syscall.SIGTERM)},
	{"the terminal is closed (SIGHUP)", "130", "same as Ctrl-C", interrupt(syscall.SIGHUP)},
	{"Ctrl-C in a run that waits for another run", "130", "the other run continues", interruptedWaiting},
	{"the client is paused and resumed (SIGSTOP, SIGCONT)", "0", "the run continues and succeeds", pausedClient},
	{
		"the engine is killed between two steps", "0", "builder starts the engine again, and the cell continues from its cache",
		killEngine("engine", "source"),
	},
	{"the engine is killed in the build step", "0", "builder starts the engine again and repeats the step", killEngine("engine", "build")},
	{
		"the engine is killed while gates run", "0", "the interruption gives no verdict; the gates run again",
		killEngine("engine", "gate elf-symbols"),
	},
	{
		"the supervisor of the engine is killed", "0", "the kernel ends every process of the engine; builder starts it again",
		killEngine("engine.sh", "build"),
	},
	{"the client and the engine are killed together", "-", "the next run starts the engine and repeats the step", killBoth},
	{"the engine hangs (SIGSTOP)", "0", "after `BUILDER_ENGINE_PATIENCE`, builder restarts the engine and repeats the step", hungEngine},
	{"a step hangs", "5", "after `--step-limit`, its processes are killed; the error names the step", hungStep},
	{"a build process is killed, as by the kernel when memory runs out", "5", "the build fails and is not retried", killedCompiler},
	{"the given engine cannot be reached", "9", "nothing is built; the error names the address", unreachableEngine},
	{"the connection breaks during a download", "0", "the download continues at the break", lostConnection},
	{"the server of a source answers 404", "8", "the error names every URL; once the file is back, the next run succeeds", goneSource},
	{"the disk of the results is full", "1", "no partial wheel has its final name; once there is space, the next run succeeds", fullResults},
	{"the disk of the store is full", "8", "the store verifies; once there is space, the next run succeeds", fullStore},
	{"the disk of the engine is full", "9", "the error says so; once there is space, the next run succeeds", fullEngine},
	{"a file in the store is damaged", "0", "the next use detects it and fetches the file again", damagedBlob},
	{"a wheel in the store is damaged", "0", "the next use detects it and builds the wheel again", damagedWheel},
	{"the record of a result is damaged", "0", "the record is ignored, and the cell is built again", damagedRecord},
	{"the base layer made from Debian packages is damaged", "0", "it is made again", damagedLayer},
	{"the engine's databases are damaged", "9", "the error names the command that empties the cache; after it, the next run succeeds", damagedDatabases},
	{"the engine's snapshots are missing", "9", "the error names the command that empties the cache; after it, the next run succeeds", goneSnapshots},
	{"a step leaves directories that are too deep for the engine", "5", "the build fails and is not retried; the engine keeps its cache", deepDirectories},
	{"a step prints more than the engine gives back", "0", "the log of the step is cut", longOutput},
	{"run.json of an earlier run is damaged", "0", "it is written again", damagedReport},
	{"two runs with the same results directory", "0 and 0", "the second waits for the first", sameOut},
	{"two runs build the same cell at the same time", "0 and 0", "both wheels have the same bytes", sameCell},
	{"the client, the engine or both are killed at random moments, repeatedly", "-", "the store verifies, and the run after the last kill succeeds", randomKills},
}

// docs/exit-codes.md has the same table of faults. TestE2E checks each row.
func TestFaultTable(t *testing.T) {
	check.That(t, len(faults) >= 25, "%d faults, 25 are promised", len(faults))
	golden.CheckSection(t, "../../docs/exit-codes.md", "<!-- faults -->\n", "<!-- end of faults -->", faultTable(faults))
}

// faultTable is the table of docs/exit-codes.md.
func faultTable(rows []fault) string {
	var b strings.Builder
	b.WriteString("| fault | exit | afterwards |\n|---|---|---|\n")
	for _, f := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, f.exit, f.after)
	}
	return b.String()
}

// unlucky runs all faults.
func unlucky(b *tool) {
	turns := 0
	site, stamp := b.steady()
	for i, f := range faults {
		b.t.Run(f.name, func(t *testing.T) {
			own := *b
			own.t = t
			f.tell(&scene{tool: &own, out: fmt.Sprintf("out-fault-%d", i), site: site, stamp: stamp, turns: &turns})
		})
	}
}

func killClient(step string) func(*scene) {
	return func(s *scene) {
		p := s.start(s.cell("slow")).in(step)
		p.signal(syscall.SIGKILL).end()
		s.sound()
		p.again()
		s.sound()
	}
}

// A build must not survive its killed client: the next run would join it.
func killedHung(s *scene) {
	p := s.start(s.cell("hung")).in("build")
	time.Sleep(2 * time.Second)
	p.signal(syscall.SIGKILL).end()
	s.sound()
}

func interrupt(sig syscall.Signal) func(*scene) {
	return func(s *scene) {
		p := s.start(s.cell("slow")).in("build").signal(sig)
		p.exits(130)
		s.sound()
		contains(s.t, string(s.report()), `"finished"`)
		p.again()
	}
}

// report returns the current run.json.
func (s *scene) report() []byte {
	data, err := os.ReadFile(filepath.Join(s.dir, s.out, "run.json"))
	check.That(s.t, err == nil, "%v", err)
	return data
}

func interruptTwice(s *scene) {
	p := s.start(s.cell("slow")).in("build").signal(syscall.SIGINT)
	time.Sleep(50 * time.Millisecond)
	code := p.signal(syscall.SIGINT).end()
	check.That(s.t, code == 130 || code == -1, "exit %d", code)
	s.sound()
	p.again()
}

func interruptedWaiting(s *scene) {
	first := s.start(s.cell("slow")).in("build")
	second := s.start(first.wanted).until("waiting for it").signal(syscall.SIGINT)
	second.exits(130)
	first.exits(0)
	s.sound()
}

func pausedClient(s *scene) {
	p := s.start(s.cell("slow")).in("build").signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	p.signal(syscall.SIGCONT).exits(0)
	s.sound()
}

func killEngine(program, step string) func(*scene) {
	return func(s *scene) {
		p := s.start(s.cell("slow")).in(step)
		s.killEngine(program, syscall.SIGKILL)
		p.exits(0)
		s.sound()
	}
}

func killBoth(s *scene) {
	p := s.start(s.cell("slow")).in("build")
	s.killEngine("engine", syscall.SIGKILL)
	p.signal(syscall.SIGKILL).end()
	s.sound()
	p.again()
	s.sound()
}

func hungEngine(s *scene) {
	p := s.start(s.cell("slow"), "BUILDER_ENGINE_PATIENCE=6s").in("build")
	s.killEngine("engine", syscall.SIGSTOP)
	p.exits(0, "the engine does not answer, restarting it")
	s.sound()
}

func hungStep(s *scene) {
	p := s.start(append(s.cell("hung"), "--step-limit", "15s"))
	p.exits(5, "step build: it did not end within 15s", "--step-limit")
	s.sound()
}

func killedCompiler(s *scene) {
	p := s.start(s.cell("slow")).in("build")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		killed := false
		for pid, env := range processes() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if s.builds(env) && strings.HasPrefix(string(line), "sleep") {
				killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
			}
		}
		if killed {
			break
		}
		must.Hold(s.t, !time.Now().After(deadline), "no process of the build\n%s", p.said)
	}
	p.exits(5, "step build: exit 137")
	s.sound()
	p.again()
}

func unreachableEngine(s *scene) {
	s.start(append(s.cell("swift"), "--engine", "tcp://127.0.0.1:1")).exits(9, "tcp://127.0.0.1:1")
	s.sound()
}

// second returns the tool with another home on this host and its own engine.
func (s *scene) second() *tool {
	own := *s.tool
	own.home = filepath.Join(s.dir, "second")
	own.copiesEngine()
	own.stopsEngine()
	return &own
}

const markupsafe = "d283d37a890ba4c1ae73ffadf8046435c76e7bc2247bbb63c00bd1a709c6544b"

// source starts a server of the sdist. handle may answer a request and return true;
// otherwise the server answers normally.
func (s *scene) source(handle func(w http.ResponseWriter, r *http.Request, data []byte) (done bool)) (set string) {
	s.t.Helper()
	data := must.Get(os.ReadFile(s.blob(markupsafe)))(s.t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handle(w, r, data) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
		}
	}))
	s.t.Cleanup(server.Close)
	s.drop(markupsafe)
	return "source.markupsafe=" + server.URL + "/MarkupSafe-2.1.5.tar.gz"
}

// blob returns the path of a file in the store.
func (b *tool) blob(sum string) string {
	var found string
	filepath.WalkDir(filepath.Join(b.home, "store", "sha256"), func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == sum {
			found = path
		}
		return nil
	})
	return found
}

// drop removes a file from the store.
func (b *tool) drop(sum string) {
	b.t.Helper()
	must.Succeed(b.t, os.Remove(b.blob(sum)))
}

// alone is an environment without access to other hosts.
var alone = []string{"HTTPS_PROXY=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1"}

func half(w http.ResponseWriter, data []byte, from int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
	if from > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(data[from : from+(len(data)-from)/2])
	http.NewResponseController(w).Flush()
}

func killedInFetch(s *scene) {
	var hung bool
	set := s.source(func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		if hung {
			return false
		}
		hung = true
		half(w, data, 0)
		<-r.Context().Done()
		return true
	})
	p := s.start(append(s.cell("swift"), "--set", set), alone...).in("fetch")
	time.Sleep(time.Second)
	p.signal(syscall.SIGKILL).end()
	s.sound()
	p.again(alone...)
	s.sound()
}

func lostConnection(s *scene) {
	asked := 0
	set := s.source(func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		asked++
		if asked > 1 {
			return false
		}
		half(w, data, 0)
		panic(http.ErrAbortHandler)
	})
	s.start(append(s.cell("swift"), "--set", set), alone...).exits(0)
	s.sound()
}

func goneSource(s *scene) {
	gone := true
	set := s.source(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if gone {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "gone")
		}
		return gone
	})
	p := s.start(append(s.cell("swift"), "--set", set), alone...)
	p.exits(8, strings.TrimPrefix(set, "source.markupsafe="), "404")
	s.sound()
	gone = false
	p.again(alone...)
}

func fullResults(s *scene) {
	dir := filepath.Join(s.dir, s.out)
	enlarge := s.limited(dir, "32k")
	p := s.start(s.cell("swift"))
	code := p.end()
	check.That(s.t, code != 0 && code != 130, "exit %d", code)
	contains(s.t, p.said.String(), "no space left on device")
	found, _ := filepath.Glob(filepath.Join(dir, "*", "*.whl"))
	check.That(s.t, len(found) == 0, "half a wheel has a good name: %v", found)
	s.nothingLeft()
	enlarge("64m")
	p.again()
	s.sound()
}

func fullStore(s *scene) {
	own := s.second()
	own.want(0, "engine", "up") // the store takes the file with its programs
	own.want(0, "engine", "down")
	enlarge := s.limited(filepath.Join(own.home, "store"), "4m")
	s.tool = own
	engine := strings.TrimSpace(s.want(0, "engine", "up").stdout)
	p := s.start(append(s.cell("swift"), "--engine", engine))
	p.exits(8, "no space left on device")
	s.sound()
	enlarge("2g")
	p.again()
	s.want(0, "engine", "down")
}

func fullEngine(s *scene) {
	own := s.second()
	os.RemoveAll(filepath.Join(own.home, "engine", "state"))
	enlarge := s.limited(filepath.Join(own.home, "engine", "state"), "150m")
	engine := strings.TrimSpace(own.want(0, "engine", "up").stdout)
	p := s.start(append(s.cell("swift"), "--engine", engine))
	p.exits(9, "no space left on device", "make room")
	s.sound()
	enlarge("3g")
	p.again()
	own.want(0, "engine", "down")
	own.want(0, "engine", "up")
	own.cache = append(own.cache, "BUILDER_ENGINE_CACHE=21GB")
	own.want(0, "engine", "up") // nobody uses the engine that just started
	own.want(0, "engine", "down")
}

func damagedBlob(s *scene) {
	s.damage("store/sha256", func(path string) bool { return filepath.Base(path) == markupsafe })
	s.start(s.cell("swift")).exits(0)
	s.sound()
}

func damagedWheel(s *scene) {
	p := s.start(s.cell("swift"))
	p.exits(0)
	wheel := s.runJSON(s.out).Cells[0].Artifacts[0]
	s.damage("store/sha256", func(path string) bool { return filepath.Base(path) == wheel.SHA256 })
	must.Succeed(s.t, os.RemoveAll(filepath.Join(s.dir, s.out)))
	p.again()
	c := s.runJSON(s.out).Cells[0]
	check.That(s.t, c.From == "build" && c.Artifacts[0].SHA256 == wheel.SHA256, "got %+v", c)
	s.sound()
}

func damagedRecord(s *scene) {
	p := s.start(s.cell("swift"))
	p.exits(0)
	key := s.runJSON(s.out).Cells[0].Key
	s.damage("store/results", func(path string) bool { return strings.Contains(path, key) })
	p.again()
	c := s.runJSON(s.out).Cells[0]
	check.That(s.t, c.From == "build", "got %+v", c)
	s.sound()
}

func damagedLayer(s *scene) {
	s.damage("scratch", func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "bootstrap-") && strings.HasSuffix(path, ".tar")
	})
	s.start(s.cell("swift")).exits(0)
	s.sound()
}

// elsewhere gives the scene its own engine, which has built a cell and is stopped.
// Damage there does not affect other chapters.
func (s *scene) elsewhere() {
	s.t.Helper()
	s.tool = s.second()
	s.start(s.cell("swift")).exits(0)
	s.want(0, "engine", "down")
}

func damagedDatabases(s *scene) {
	s.elsewhere()
	s.damage("engine/state", func(path string) bool { return strings.HasSuffix(path, ".db") })
	// The damaged pages decide whether the engine fails at its start or during the build.
	s.emptiesTheCache()
}

func goneSnapshots(s *scene) {
	s.elsewhere()
	dirs, _ := filepath.Glob(filepath.Join(s.home, "engine", "state", "worker", "snapshots", "snapshots", "*"))
	must.Hold(s.t, len(dirs) != 0, "no snapshots")
	for _, dir := range dirs {
		must.Succeed(s.t, os.RemoveAll(dir))
	}
	s.emptiesTheCache()
}

// emptiesTheCache runs a cell on an engine with a damaged cache, and empties the cache.
func (s *scene) emptiesTheCache() {
	s.t.Helper()
	p := s.start(s.cell("swift"))
	p.exits(9, "`builder store gc` empties the cache")
	s.want(0, "store", "gc")
	p.again()
	s.sound()
}

// ending returns the scene with builds that end with these lines.
func (s *scene) ending(lines string) *scene {
	s.t.Helper()
	own := *s
	own.site, own.stamp = s.steady()
	path := filepath.Join(own.site, "recipes", "steady.yaml")
	const last = "--wheel-dir \"$BUILDER_DIST\" .\n"
	recipe := contentOf(s.tool, path)
	contains(s.t, recipe, last)
	must.Succeed(s.t, os.WriteFile(path, []byte(strings.Replace(recipe, last, last+lines, 1)), 0o644))
	return &own
}

// The engine's error names files of its cache.
func deepDirectories(s *scene) {
	s = s.ending("  python -c 'import os; [(os.mkdir(\"d\" * 200), os.chdir(\"d\" * 200)) for _ in range(30)]'\n")
	s.want(0, "engine", "up")
	cache := filepath.Join(s.home, "engine", "state")
	before := must.Get(os.Stat(cache))(s.t)
	p := s.start(s.cell("swift"))
	p.exits(5, "the engine cannot keep or read what the step made")
	check.That(s.t, !strings.Contains(p.said.String(), "starts again"), "the build was retried")
	after, err := os.Stat(cache)
	check.That(s.t, err == nil && os.SameFile(before, after), "the engine has another cache: %v", err)
	s.sound()
}

func longOutput(s *scene) {
	s = s.ending("  head -c 100000000 /dev/zero | base64\n") // 135 MB
	s.start(s.cell("swift")).exits(0)
	log := contentOf(s.tool, filepath.Join(s.dir, s.out, s.runJSON(s.out).Cells[0].ID, "logs", "build.log"))
	contains(s.t, log, "the step printed more than the engine gives back")
	s.sound()
}

func damagedReport(s *scene) {
	p := s.start(s.cell("swift"))
	p.exits(0)
	path := filepath.Join(s.dir, s.out, "run.json")
	data := s.report()
	must.Succeed(s.t, os.WriteFile(path, data[:len(data)/2], 0o644))
	p.again()
	s.sound()
}

func sameOut(s *scene) {
	first := s.start(s.cell("slow")).in("build")
	second := s.start(s.cell("swift")).until("waiting for it")
	first.exits(0)
	second.exits(0)
	s.sound()
}

func sameCell(s *scene) {
	first := s.start(s.cell("slow"))
	other := *s
	other.out = s.out + "-too"
	args := append([]string{}, first.wanted...)
	args[len(args)-1] = other.out
	second := other.start(args)
	first.exits(0)
	second.exits(0)
	a, b := s.runJSON(s.out).Cells[0], s.runJSON(other.out).Cells[0]
	check.That(s.t, a.Artifacts[0].SHA256 == b.Artifacts[0].SHA256, "%s and %s", a.Artifacts[0].SHA256, b.Artifacts[0].SHA256)
	s.sound()
}

// randomKills kills the tool BUILDER_E2E_KILLS times.
func randomKills(s *scene) {
	kills, err := strconv.Atoi(os.Getenv("BUILDER_E2E_KILLS"))
	if err != nil {
		kills = 6
	}
	seed := uint64(time.Now().UnixNano())
	s.t.Logf("%d kills, seed %d", kills, seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	args, span := s.cell("swift"), 8*time.Second
	var last *proc
	for i := range kills {
		last = s.start(args)
		select {
		case <-last.ended: // it ended before the kill: use another cell
			args = s.cell("swift")
			continue
		case <-time.After(time.Duration(chance.Int64N(int64(span)))):
		}
		who := chance.IntN(3)
		if pid := s.engineProcess([]string{"engine", "engine.sh"}[chance.IntN(2)]); who > 0 && pid > 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if who < 2 {
			last.signal(syscall.SIGKILL)
		}
		last.end()
		if i%10 == 9 {
			s.sound()
		}
	}
	s.sound()
	s.start(args).exits(0)
	s.sound()
}
