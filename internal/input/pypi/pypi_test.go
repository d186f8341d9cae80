package pypi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// recorded returns recorded output of uv with replaced host names.
func recorded(t *testing.T) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/pylock.toml"))(t)
}

// isolate hides the host's configuration from the test.
func isolate(t *testing.T) {
	t.Helper()
	empty := t.TempDir()
	for _, name := range os.Environ() {
		name, _, _ = strings.Cut(name, "=")
		if strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"} {
		t.Setenv(name, empty)
	}
	t.Setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")
}

// fakeUV returns a program that answers with the lock. asked returns the recorded
// arguments and input. script runs first.
func fakeUV(t *testing.T, lock []byte, script string) (t2 Tool, asked func() string) {
	t.Helper()
	isolate(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "uv")
	text := fmt.Sprintf("#!/bin/sh\n%s\necho \"$@\" >>%[2]s/asked\ncat pyproject.toml >>%[2]s/asked\ncp %[2]s/lock pylock.toml\n", script, dir)
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o755), os.WriteFile(filepath.Join(dir, "lock"), lock, 0o644))
	return Tool{Path: path}, func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return string(data)
	}
}

// files starts a server. The size of each file is the length of its name.
func files(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(filepath.Base(r.URL.Path))))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestResolve(t *testing.T) {
	lock := strings.ReplaceAll(string(recorded(t)), "https://example.invalid", files(t))
	lock = lock[:strings.LastIndex(lock, "[[packages]]")] // without the sdist
	uv, asked := fakeUV(t, []byte(lock), "")
	got, err := uv.Resolve(t.Context(), t.TempDir(), Request{
		Requirements: []string{"tensorflow-rocm==2.13.0.570", "setuptools<70"}, Python: "3.11", Platform: "x86_64-manylinux_2_36",
	})
	must.Succeed(t, err)
	var names []string
	for _, f := range got {
		names = append(names, f.Filename)
		check.That(t, f.Size == int64(len(f.Filename)) && len(f.SHA256) == 64 && f.Project != "" && f.Version != "", "got %+v", f)
	}
	want := []string{
		"charset_normalizer-3.5.2-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl",
		"cryptography-50.0.2-cp311-abi3-manylinux_2_28_x86_64.whl",
		"protobuf-4.25.9-cp37-abi3-manylinux2014_x86_64.whl",
		"setuptools-69.5.1-py3-none-any.whl",
		"tensorflow_rocm-2.13.0.570-cp311-cp311-manylinux2014_x86_64.whl",
	}
	check.Same(t, "values", want, names)
	for _, want := range []string{"--only-binary :all:", "--python-version 3.11", "--python-platform x86_64-manylinux_2_36", `"setuptools<70"`} {
		check.That(t, strings.Contains(asked(), want), "%q is not in %s", want, asked())
	}
}

func TestResolveRefuses(t *testing.T) {
	uv, asked := fakeUV(t, recorded(t), "")
	for _, line := range []string{
		"--index-url http://evil.invalid", "-r /etc/passwd", "a @ http://evil.invalid/a.whl", "./a", "/a", "a/b", "${HOME}", "a\n-r b", "",
	} {
		req := Request{Requirements: []string{line}, Python: "3.11", Platform: "x86_64-manylinux_2_28"}
		_, err := uv.Resolve(t.Context(), t.TempDir(), req)
		check.That(t, diag.CodeOf(err) == diag.Usage, "%q: %v", line, err)
	}
	for _, req := range []Request{{Python: "3.11", Platform: "windows"}, {Python: "2.7", Platform: "x86_64-manylinux_2_28"}, {Python: "3.11"}} {
		_, err := uv.Resolve(t.Context(), t.TempDir(), req)
		check.That(t, diag.CodeOf(err) == diag.Usage, "%+v: %v", req, err)
	}
	check.That(t, asked() == "", "uv was asked: %s", asked())
	// Horovod, the last recorded package, has no wheels.
	req := Request{Python: "3.11", Platform: "x86_64-manylinux_2_28"}
	_, err := uv.Resolve(t.Context(), t.TempDir(), req)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "horovod 0.28.1 has no wheel"), "got %v", err)
}

func TestOneRelease(t *testing.T) {
	const python, platform = "3.11", "x86_64-manylinux_2_28"
	sdist := func(uv Tool, project, version string) (File, error) {
		return uv.Sdist(t.Context(), t.TempDir(), project, version)
	}
	wheel := func(uv Tool, project, version string) (File, error) {
		return uv.Released(t.Context(), t.TempDir(), project, version, python, platform)
	}
	_, packages, _ := strings.Cut(strings.ReplaceAll(string(recorded(t)), "https://example.invalid", files(t)), "[[packages]]")
	for _, c := range []struct {
		ask  func(uv Tool, project, version string) (File, error)
		want File
	}{
		{sdist, File{Project: "horovod", Version: "0.28.1", Filename: "horovod-0.28.1.tar.gz", Size: 21, SHA256: "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"}},
		{wheel, File{Project: "setuptools", Version: "69.5.1", Filename: "setuptools-69.5.1-py3-none-any.whl", Size: 34, SHA256: "c636ac361bc47580504644275c9ad802c50415c7522212252c033bd15f301f32"}},
	} {
		var lock string
		for p := range strings.SplitSeq(packages, "[[packages]]") {
			if strings.Contains(p, c.want.Filename) {
				lock = "[[packages]]" + p
			}
		}
		uv, asked := fakeUV(t, []byte(lock), "")
		got, err := c.ask(uv, c.want.Project, c.want.Version)
		if err != nil || got != c.want || !strings.Contains(asked(), `["`+c.want.Project+"=="+c.want.Version+`"]`) || !strings.Contains(asked(), "--no-deps") {
			t.Errorf("got %+v, %v; asked %s", got, err, asked())
		}
		_, err = c.ask(uv, "-r", "x")
		check.That(t, diag.CodeOf(err) == diag.Usage, "got %v", err)
		none, _ := fakeUV(t, []byte("lock-version = \"1.0\"\n"), "")
		_, err = c.ask(none, c.want.Project, c.want.Version)
		check.That(t, diag.CodeOf(err) == diag.Fetch, "got %v", err)
	}
}

func TestLocate(t *testing.T) {
	uv, asked := fakeUV(t, recorded(t), "")
	sdist := File{Project: "horovod", Version: "0.28.1", Filename: "horovod-0.28.1.tar.gz", Size: 1, SHA256: "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"}
	wheel := File{Project: "setuptools", Version: "69.5.1", Filename: "setuptools-69.5.1-py3-none-any.whl", Size: 1, SHA256: "c636ac361bc47580504644275c9ad802c50415c7522212252c033bd15f301f32"}
	got, err := uv.Locate(t.Context(), t.TempDir(), []File{sdist, wheel})
	must.Hold(t, err == nil && len(got) == 2 && strings.HasSuffix(string(got[sdist.SHA256]), "/horovod-0.28.1.tar.gz"),
		"got %v, %v", got, err)
	if n := strings.Count(asked(), "pip compile"); n != 1 {
		t.Errorf("uv was asked %d times: %s", n, asked())
	}
	wheel.SHA256 = strings.Repeat("0", 64)
	scratch := t.TempDir()
	_, err = uv.Locate(t.Context(), scratch, []File{sdist, wheel})
	left, _ := os.ReadDir(scratch)
	check.That(t, len(left) == 0, "left behind: %v", left)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), wheel.Filename) && !strings.Contains(err.Error(), "horovod"),
		"a file that was replaced: %v", err)
	got, err = uv.Locate(t.Context(), t.TempDir(), nil)
	check.That(t, err == nil && len(got) == 0, "nothing: %v, %v", got, err)
}

// uv itself asks a public index and a named one, both of which have every package.
func TestNamedIndex(t *testing.T) {
	index := func(wheels ...wheeltest.Wheel) string {
		served := http.NewServeMux()
		for _, w := range wheels {
			project, _, _ := strings.Cut(w.Name, "-")
			served.HandleFunc("/simple/"+wheel.NormalName(project)+"/", func(out http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".whl") {
					out.Write(w.Bytes())
					return
				}
				fmt.Fprintf(out, "<a href=%q>%s</a>", fmt.Sprintf("%s#sha256=%x", w.Name, sha256.Sum256(w.Bytes())), w.Name)
			})
		}
		server := httptest.NewServer(served)
		t.Cleanup(server.Close)
		return server.URL
	}
	wheelOf := func(name string, requires ...string) wheeltest.Wheel {
		return wheeltest.Wheel{Name: name + "-py3-none-any.whl", Requires: requires}
	}
	public := index(wheelOf("torch-9.0"), wheelOf("triton-9.0"), wheelOf("numpy-1.0"))
	named := index(wheelOf("torch-2.0+rocm", "triton", "numpy"), wheelOf("triton-3.0"), wheelOf("numpy-8.0"))
	uv, err := Programs{Home: t.TempDir(), Note: t.Logf, NoInstall: true}.UV(t.Context())
	must.Succeed(t, err)
	isolate(t)
	t.Setenv("UV_DEFAULT_INDEX", public+"/simple")
	req := Request{Requirements: []string{"torch>1 from rocm", "triton from rocm"}, Python: "3.12", Platform: "x86_64-manylinux_2_28"}

	_, err = uv.Resolve(t.Context(), t.TempDir(), req)
	e, _ := errors.AsType[*diag.Error](err)
	must.Hold(t, e != nil && e.Code == diag.Usage && strings.Contains(e.Hint, "BUILDER_PYTHON_INDEX=rocm=URL"), "without an address: %+v", err)

	uv.indexes = map[string]string{"rocm": named + "/simple"}
	got := must.Get(uv.Resolve(t.Context(), t.TempDir(), req))(t)
	var names []string
	for _, f := range got {
		names = append(names, f.Filename+" "+f.Index)
	}
	check.Same(t, "files", []string{"numpy-1.0-py3-none-any.whl ", "torch-2.0+rocm-py3-none-any.whl rocm", "triton-3.0-py3-none-any.whl rocm"}, names)
	places := must.Get(uv.Locate(t.Context(), t.TempDir(), got))(t)
	for _, f := range got {
		check.That(t, strings.HasPrefix(string(places[f.SHA256]), map[string]string{"": public, "rocm": named}[f.Index]), "%s is at %s", f.Filename, string(places[f.SHA256]))
	}

	// A package that only the public index has is not taken from there.
	req.Requirements = []string{"numpy from rocm", "setuptools from rocm"}
	_, err = uv.Resolve(t.Context(), t.TempDir(), req)
	must.Hold(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "setuptools"), "a package that the named index lacks: %v", err)
}

func TestRounds(t *testing.T) {
	f := func(project, version, filename string) File {
		return File{Project: project, Version: version, Filename: filename}
	}
	sdist := f("horovod", "0.28.1", "horovod-0.28.1.tar.gz")
	pure := f("wheel", "0.4", "wheel-0.4-py3-none-any.whl")
	stable := f("psutil", "7", "psutil-7-cp36-abi3-manylinux2010_x86_64.whl")
	numpy := f("numpy", "1.24.3", "numpy-1.24.3-cp311-cp311-manylinux2014_x86_64.whl")
	other := f("numpy", "1.26.4", "numpy-1.26.4-cp311-cp311-manylinux2014_x86_64.whl")
	older := f("numpy", "1.24.3", "numpy-1.24.3-cp38-cp38-manylinux2014_x86_64.whl")
	for _, c := range []struct {
		name  string
		files []File
		want  string
	}{
		{"a resolved set", []File{sdist, pure, stable, numpy}, "3.11 horovod==0.28.1 numpy==1.24.3 psutil==7 wheel==0.4"},
		{"no Python requirement", []File{sdist, pure, stable}, "3.14 horovod==0.28.1 psutil==7 wheel==0.4"},
		{"two versions", []File{numpy, pure, other}, "3.11 numpy==1.24.3 wheel==0.4; 3.11 numpy==1.26.4"},
		{"two Pythons", []File{numpy, older, pure}, "3.11 numpy==1.24.3 wheel==0.4; 3.8 numpy==1.24.3"},
		{"none", nil, ""},
	} {
		var got []string
		for _, r := range rounds(c.files) {
			var pins []string
			for _, project := range slices.Sorted(maps.Keys(r.pins)) {
				pins = append(pins, project+"=="+r.pins[project].Version)
			}
			got = append(got, fmt.Sprintf("3.%d %s", r.minor, strings.Join(pins, " ")))
		}
		check.That(t, strings.Join(got, "; ") == c.want, "%s: got %q", c.name, got)
	}
}

func TestUVFails(t *testing.T) {
	uv, _ := fakeUV(t, nil, "echo 'error: Request failed\n  cause: Failed to fetch: https://me:hush@index.invalid/simple?token=hush' >&2; exit 2")
	_, err := uv.Sdist(t.Context(), t.TempDir(), "horovod", "0.28.1")
	e, ok := errors.AsType[*diag.Error](err)
	must.Hold(t, ok && e.Code == diag.Fetch && strings.Contains(e.Error(), "Request failed: Failed to fetch: https://index.invalid") && len(e.Log) == 2,
		"got %+v", err)
	check.That(t, !strings.Contains(fmt.Sprint(e, e.Log), "hush"), "tells a secret: %v %v", e, e.Log)
	slow, _ := fakeUV(t, nil, "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = slow.Sdist(ctx, t.TempDir(), "horovod", "0.28.1")
	check.That(t, diag.CodeOf(err) == diag.Interrupted, "cancelled: %v", err)
}

func TestUV(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("uv is pinned for Linux")
	}
	home := t.TempDir()
	say := func(string, ...any) {}
	if _, err := (Programs{Home: home, Note: say, Offline: true}).UV(t.Context()); diag.CodeOf(err) != diag.Fetch {
		t.Errorf("offline: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Programs{Home: home, Note: say, NoInstall: true}.UV(t.Context())
	e, ok := errors.AsType[*diag.Error](err)
	check.That(t, ok && e.Code == diag.Fetch && strings.Contains(e.Hint, "python3-pip"), "without pip: %v", err)
}

// A wheel in the store needs neither pip nor a network. A damaged program is installed
// again, from the store or from the wheel beside it.
func TestUVFromTheStore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("uv is pinned for Linux")
	}
	home := t.TempDir()
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	const program = "#!/bin/sh\n"
	wheel := wheeltest.ZIP(time.Unix(0, 0), wheeltest.File{Name: UV.members[0], Text: program})
	kept := must.Get(s.Put(bytes.NewReader(wheel)))(t)
	pin := UV.wheels[runtime.GOARCH]
	defer func() { UV.wheels[runtime.GOARCH] = pin }()
	UV.wheels[runtime.GOARCH] = store.Blob{Name: pin.Name, SHA256: kept.SHA256}
	t.Setenv("PATH", t.TempDir())
	for _, from := range []*store.Store{s, s, nil, nil} {
		uv, err := Programs{Home: home, Note: t.Logf, Offline: true, NoInstall: true, Store: from}.UV(t.Context())
		must.Succeed(t, err)
		got, err1 := os.ReadFile(uv.Path)
		beside, err2 := store.Of(filepath.Join(home, "tools", "uv-"+UV.Version, pin.Name))
		err = errors.Join(err1, err2)
		check.That(t, err == nil && string(got) == program && beside.SHA256 == kept.SHA256, "%q of %s, %v", got, beside.SHA256, err)
		must.Succeed(t, os.WriteFile(uv.Path, []byte("#!/bin/sh!"), 0o755))
	}
}

// The fake pip returns other bytes than requested.
func TestUVBelievesNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("uv is pinned for Linux")
	}
	bin, home := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\n[ \"$3\" = --version ] && exit\nwhile [ \"$1\" != --dest ]; do shift; done\necho evil >\"$2/" + UV.wheels[runtime.GOARCH].Name + "\"\n"
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err := Programs{Home: home, Note: t.Logf, NoInstall: true}.UV(t.Context())
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "expected sha256"), "got %v", err)
	left, _ := os.ReadDir(filepath.Join(home, "tools"))
	check.That(t, len(left) == 0, "left behind: %v", left)
}

func TestPins(t *testing.T) {
	for _, p := range []Program{UV, Ccache, Bubblewrap} {
		for arch, pin := range p.wheels {
			name, err := wheel.ParseName(pin.Name)
			check.That(t, err == nil && name.Version == p.Version && digestPattern.MatchString(pin.SHA256),
				"%s for %s: %+v, %v", p.Name, arch, pin, err)
		}
	}
}

func TestEnviron(t *testing.T) {
	isolate(t)
	for _, c := range []struct {
		name string
		set  map[string]string
		toml string
		want string
	}{
		{"uv's own", map[string]string{"UV_DEFAULT_INDEX": "https://uv.invalid", "PIP_INDEX_URL": "https://pip.invalid"}, "", "https://uv.invalid"},
		{"pip's variable", map[string]string{"UV_DEFAULT_INDEX": "", "PIP_INDEX_URL": "https://pip.invalid"}, "", "https://pip.invalid"},
		{"uv.toml", map[string]string{"UV_DEFAULT_INDEX": "", "PIP_INDEX_URL": "https://pip.invalid"}, "[[index]]\n", ""},
	} {
		for name, value := range c.set {
			t.Setenv(name, value)
		}
		if c.toml != "" {
			dir := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "uv")
			must.Succeed(t, os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "uv.toml"), []byte(c.toml), 0o644))
		}
		env := Tool{cache: "/cache"}.environ(t.Context())
		check.Same(t, fmt.Sprintf("%s: the indexes", c.name), c.want, strings.Join(env.indexes(), " "))
		check.That(t, env["UV_DEFAULT_INDEX"] == c.want && env["UV_CACHE_DIR"] == "/cache" && env["UV_PYTHON_DOWNLOADS"] == "never",
			"%s: %q", c.name, env["UV_DEFAULT_INDEX"])
	}
}

// A directory pip/ of the working directory is not taken for pip.
func TestPipOfTheCheckout(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	mark := filepath.Join(dir, "mark")
	must.Succeed(t, os.Mkdir("pip", 0o755), os.WriteFile("pip/__init__.py", nil, 0o644))
	must.Succeed(t, os.WriteFile("pip/__main__.py", fmt.Appendf(nil, "open(%q, 'w')", mark), 0o644))
	if pip := FindPip(t.Context()); pip != nil {
		_ = PipCommand(t.Context(), pip, "config", "list").Run()
	}
	_, err := os.Stat(mark)
	check.That(t, os.IsNotExist(err), "the checkout's pip ran: %v", err)
}

func TestParsePipConfig(t *testing.T) {
	got := parsePipConfig(`:env:.index-url='https://env.invalid/simple'
global.index-url='https://global.invalid/simple'
global.extra-index-url='\nhttps://a.invalid\nhttps://b.invalid'
install.cert="/etc/it's.pem"
global.timeout='60'
freeze.index-url='https://no.invalid'
nonsense
:env:.index-url='https://last.invalid/simple'
`)
	want := map[string]string{
		"index-url": "https://last.invalid/simple", "extra-index-url": "https://a.invalid https://b.invalid", "cert": "/etc/it's.pem",
	}
	check.Same(t, "values", want, got)
}

func TestAuthorise(t *testing.T) {
	releases := []release{{files: []found{
		{source: "https://private.invalid/a.whl"},
		{source: "https://public.invalid/a.whl"},
		{source: "http://private.invalid/a.whl"},
		{source: "https://named.invalid/a.whl"},
		{source: "/a.whl"},
	}}}
	authorise(releases, vars{
		"UV_DEFAULT_INDEX": "https://me:hush@private.invalid/simple",
		"UV_INDEX":         "https://public.invalid/simple corp=https://you:hush@named.invalid/simple",
	}.indexes())
	want := []store.Place{
		"https://me:hush@private.invalid/a.whl", "https://public.invalid/a.whl", "http://private.invalid/a.whl",
		"https://you:hush@named.invalid/a.whl", "/a.whl",
	}
	for i, f := range releases[0].files {
		check.That(t, f.source == want[i], "%d: got %q, want %q", i, string(f.source), string(want[i]))
	}
}

// The fake apt-get records its arguments and makes a pip.
func TestEnsurePip(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("host packages are installed by root only")
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$DEBIAN_FRONTEND $@\" >>%[1]s/asked\n[ \"$1\" = install ] || exit 0\nprintf '#!/bin/sh\\n' >%[1]s/pip3\nchmod +x %[1]s/pip3\n", bin)
	must.Succeed(t, os.WriteFile(filepath.Join(bin, "apt-get"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	var logged []string
	note := func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }
	pip, err := Programs{Note: note}.ensurePip(t.Context(), UV)
	check.That(t, err == nil && len(pip) == 1 && pip[0] == "pip3" && len(logged) == 1 && strings.Contains(logged[0], "python3-pip"),
		"got %v, %v; told %q", pip, err, logged)
	asked, _ := os.ReadFile(filepath.Join(bin, "asked"))
	want := "noninteractive update\nnoninteractive install -y --no-install-recommends python3-pip\n"
	check.That(t, string(asked) == want, "asked for %q", asked)
}
