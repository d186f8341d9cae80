package index_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// published adds an installable wheel to an index. If requirements is set, the cell has
// a requirements file beside the wheel.
func published(t *testing.T, x *index.Index, name, version, requires, requirements string, at time.Time) artifact.Artifact {
	t.Helper()
	w := wheeltest.Wheel{
		Name:  name + "-" + version + "-py3-none-any.whl",
		Files: []wheeltest.File{{Name: name + ".py", Text: "version = '" + version + "'\n"}},
	}
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	if requires != "" {
		w.Requires = []string{requires}
		metadata += "Requires-Dist: " + requires + "\n"
	}
	a := must.Get(artifact.Of(w.Write(t), ""))(t)
	id := name + "-" + version
	p := index.Publication{
		Wheel: a, Metadata: []byte(metadata), Beside: map[string]artifact.Artifact{},
		Record: index.Record{Project: name, Version: version, Cell: id, Key: a.SHA256, Recipe: name, Channels: []string{"candidate"}, Published: at},
	}
	if requirements != "" {
		text := name + "==" + version + " --hash=sha256:" + a.SHA256 + "\n" + requirements + "\n"
		p.Beside[id+".requirements.txt"] = file(t, id+".requirements.txt", text)
	}
	add(t, x, p)
	return a
}

// user has an empty environment and a package index.
type user struct{ venv, index string }

// does runs a command line copied from a page.
func (u user) does(t *testing.T, dir, line string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(u.venv, "bin")+":"+os.Getenv("PATH"), "VIRTUAL_ENV="+u.venv, "HOME="+t.TempDir(),
		"PIP_CONFIG_FILE="+os.DevNull, "PIP_INDEX_URL="+u.index, "PIP_FIND_LINKS=", "PIP_EXTRA_INDEX_URL=", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"UV_DEFAULT_INDEX="+u.index, "UV_INDEX=", "UV_FIND_LINKS=", "UV_NO_CACHE=1", "UV_PYTHON_DOWNLOADS=never", "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newUser creates an empty environment.
func newUser(t *testing.T, index string) user {
	t.Helper()
	u := user{filepath.Join(t.TempDir(), "venv"), index}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", u.venv).CombinedOutput(); err != nil {
		t.Skipf("needs python3 with venv: %v: %s", err, out)
	}
	pip := "#!/bin/sh\nexec " + python + " -m pip --python " + filepath.Join(u.venv, "bin/python") + " \"$@\"\n"
	must.Succeed(t, os.WriteFile(filepath.Join(u.venv, "bin/pip"), []byte(pip), 0o755))
	return u
}

// needsUV skips a test on a host without uv.
func needsUV(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("uv"); err != nil {
		t.Skip("needs uv in PATH")
	}
}

var printed = regexp.MustCompile(`(?s)<pre class="(pip|uv|toml)">(.*?)</pre>`)

// said returns the install commands on the page of an index, by kind, as a browser
// shows them.
func said(t *testing.T, address string) map[string]string {
	t.Helper()
	resp := must.Get(http.Get(address))(t)
	defer resp.Body.Close()
	page := must.Get(io.ReadAll(resp.Body))(t)
	lines := map[string]string{}
	for _, m := range printed.FindAllStringSubmatch(string(page), -1) {
		lines[m[1]] = html.UnescapeString(strings.ReplaceAll(m[2], `<span class="base">ADDRESS/</span>`, address))
	}
	return lines
}

// served returns an index behind a plain file server.
func served(t *testing.T) (*index.Index, string) {
	t.Helper()
	x, dir := open(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return x, server.URL + "/"
}

var then = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The commands on the page install the wheel in an empty environment, with the
// dependencies from the user's own index.
func TestInstallLines(t *testing.T) {
	own, ownAddress := served(t)
	dep := published(t, own, "dep", "2.0", "", "", then)
	published(t, own, "dep", "3.0", "", "", then)
	published(t, own, "tool", "9.0", "", "", then) // an unrelated package with the same name
	x, address := served(t)
	published(t, x, "tool", "1.0+cuda13.0", "dep", "dep==2.0 --hash=sha256:"+dep.SHA256, then)
	lines := said(t, address)
	for kind, does := range map[string]func(*testing.T, user) (string, error){
		"pip": func(t *testing.T, u user) (string, error) { return u.does(t, t.TempDir(), lines["pip"]) },
		"uv": func(t *testing.T, u user) (string, error) {
			needsUV(t)
			return u.does(t, t.TempDir(), lines["uv"])
		},
		"toml": func(t *testing.T, u user) (string, error) {
			needsUV(t)
			dir := t.TempDir()
			text := strings.Replace(lines["toml"], "[project]\n", "[project]\nname = \"mine\"\nversion = \"1\"\nrequires-python = \">=3.9\"\n", 1) + "\n"
			must.Succeed(t, os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte(text), 0o600))
			return u.does(t, dir, "uv sync --active")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			must.Hold(t, lines[kind] != "", "the page has no line for %s: %v", kind, lines)
			u := newUser(t, ownAddress+"simple/")
			if out, err := does(t, u); err != nil {
				t.Fatalf("%s\n%v\n%s", lines[kind], err, out)
			}
			out, err := u.does(t, t.TempDir(), "python -c 'import dep, tool; print(tool.version, dep.version)'")
			want := map[string]string{"toml": "1.0+cuda13.0 3.0\n"}[kind]
			check.That(t, err == nil && (want != "" || out == "1.0+cuda13.0 2.0\n") && (want == "" || out == want), "%v: %s", err, out)
		})
	}
}
