package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// fakeDocker puts a docker into PATH that can create, cp and rm. Its image has a client
// reporting version.
func fakeDocker(t *testing.T, version string) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	script := `#!/bin/sh
echo "$*" >> ` + log + `
case $1 in
create) [ -n "` + version + `" ] || { echo "no route to host" >&2; exit 125; }; echo c0ffee ;;
cp) printf '#!/bin/sh\necho "dagger ` + version + ` (` + UpstreamImage + `) linux/amd64"\n' > "$3"; chmod 755 "$3" ;;
esac
`
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return log
}

// With Docker, the client is copied from the engine's image once, and nothing is
// compiled.
func TestClientFromImage(t *testing.T) {
	log := fakeDocker(t, Version)
	e := New(t.TempDir(), t.Logf, Options{})
	for range 2 {
		path := must.Get(e.ClientIn(t.Context(), "docker", ImageName))(t)
		leash, err := os.ReadFile(path)
		want := filepath.Join(e.dir, "client-"+Version, "dagger")
		must.Hold(t, err == nil && strings.Contains(string(leash), "exec '"+want+"'"), "%v: %s does not start %s", err, leash, want)
	}
	asked, err := os.ReadFile(log)
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	if err != nil || len(lines) != 3 || lines[0] != "create "+ImageName || !strings.HasPrefix(lines[1], "cp c0ffee:"+imageClient+" ") || lines[2] != "rm --volumes c0ffee" {
		t.Errorf("docker was asked %q, %v", lines, err)
	}
	check.That(t, !exists(e.programs.dir), "something was built")
	for _, damage := range []string{"dagger", "dagger-of-another"} {
		must.Succeed(t, os.WriteFile(filepath.Join(copiedClient(e.dir), "dagger"), []byte(damage), 0o755))
		must.Get(e.ClientIn(t.Context(), "docker", ImageName))(t)
		text, err := os.ReadFile(filepath.Join(copiedClient(e.dir), "dagger"))
		check.That(t, err == nil && strings.HasPrefix(string(text), "#!/bin/sh"), "the damaged client stays: %q, %v", text, err)
	}
}

// A client of another version and a missing image are errors. They leave no files
// behind.
func TestClientNotFromImage(t *testing.T) {
	for version, want := range map[string]string{"v0.0.1": "v0.0.1", "": "no route to host"} {
		fakeDocker(t, version)
		e := New(t.TempDir(), t.Logf, Options{})
		err := e.copyClient(t.Context(), "docker", UpstreamImage)
		check.That(t, err != nil && strings.Contains(err.Error(), want), "%q: %v", version, err)
		left, _ := filepath.Glob(filepath.Join(e.dir, "client*"))
		check.That(t, len(left) == 0, "%q: left behind: %v", version, left)
	}
}
