package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// fake installs a client program that logs its arguments. answers are the branches of a
// shell case over its arguments.
func fake(t *testing.T, name, answers string) (asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$*\" >>" + log + "\ncase \"$*\" in\n" + answers + "\n*) exit 0 ;;\nesac\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	t.Setenv("PATH", dir)
	return func() string {
		text, _ := os.ReadFile(log)
		return string(text)
	}
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct{ program, answers, want string }{
		"docker":                     {"docker", `info*) echo '{"ID":"6d7a","ServerVersion":"27.5.1"}' ;;`, "docker"},
		"docker that prints nothing": {"docker", "", ""},
		"docker without its daemon":  {"docker", `info*) echo '{"ID":"","ServerErrors":["cannot connect"]}'; exit 1 ;;`, ""},
		"the same with exit 0":       {"docker", `info*) echo '{"ID":"","ServerErrors":["cannot connect"]}' ;;`, ""},
		"podman":                     {"podman", `info*) echo '{"host":{},"version":{"Version":"4.3.1"}}' ;;`, "podman"},
		"podman that fails":          {"podman", "info*) exit 125 ;;", ""},
		"nothing":                    {"other", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, c.program, c.answers)
			d, found := Find(t.Context())
			check.That(t, string(d) == c.want && found == (c.want != ""), "got %q, %v", d, found)
		})
	}
}

func TestUp(t *testing.T) {
	c := Of("/home/a")
	c.Image, c.Args = "image:1", []string{"--bound", "1"}
	if other := Of("/home/b"); other.Name == c.Name || Of("/home/a/").Name != c.Name {
		t.Errorf("the container of one home is %s, of another %s", c.Name, other.Name)
	}
	is := digest("sha256:1", "--bound", "1")
	for name, s := range map[string]struct{ there, want, never string }{
		"no container":        {"exit 1", "run --detach --privileged --name " + c.Name, "rm "},
		"stopped":             {"echo " + is, "start " + c.Name, "run "},
		"another bound":       {"echo old", "rm --force --volumes " + c.Name, "start "},
		"another bound, busy": {"echo old ;;\ntop*) echo 7 buildctl dial-stdio", "start " + c.Name, "rm "},
	} {
		t.Run(name, func(t *testing.T) {
			asked := fake(t, "docker", "image*) echo sha256:1 ;;\ncontainer*) "+s.there+" ;;")
			address, err := Daemon("docker").Up(t.Context(), c)
			must.Hold(t, err == nil && address == "container+docker://"+c.Name, "%s, %v", address, err)
			if text := asked(); !strings.Contains(text, s.want) || strings.Contains(text, "\n"+s.never) {
				t.Errorf("want %q and no %q in:\n%s", s.want, s.never, text)
			}
		})
	}
	asked := fake(t, "docker", "image*) echo sha256:1 ;;\ncontainer*) exit 1 ;;\nrun*) echo trace >&2; echo no caps >&2; exit 125 ;;")
	_, err := Daemon("docker").Up(t.Context(), c)
	check.That(t, diag.CodeOf(err) == diag.NoEngine && strings.HasSuffix(err.Error(), "docker run: no caps"),
		"got %v after\n%s", err, asked())
	check.That(t, strings.Contains(asked(), "--volume "+c.Name+":/var/lib/dagger image:1 --bound 1"),
		"the engine has no volume or bound:\n%s", asked())
}

func TestEmptyLeavesWhatIsAtWork(t *testing.T) {
	asked := fake(t, "docker", "top*) echo 7 buildctl dial-stdio ;;")
	err := Daemon("docker").Empty(t.Context(), Of("/home"))
	check.That(t, diag.CodeOf(err) == diag.NoEngine && !strings.Contains(asked(), "rm --force"), "%v\n%s", err, asked())
	asked = fake(t, "docker", "top*) echo 1 engine ;;")
	err = Daemon("docker").Empty(t.Context(), Of("/home"))
	check.That(t, err == nil && strings.Contains(asked(), "volume rm "+Of("/home").Name), "%v\n%s", err, asked())
}

func TestDownRepeatsARemoval(t *testing.T) {
	late := filepath.Join(t.TempDir(), "late")
	asked := fake(t, "podman", `rm*) [ -e `+late+` ] && exit 0; : >`+late+`; echo given PID did not die within timeout >&2; exit 1 ;;`)
	err := Daemon("podman").Down(t.Context(), Of("/home"))
	check.That(t, err == nil && strings.Count(asked(), "rm --force") == 2, "%v\n%s", err, asked())
	// The time ends while Down looks for the container again.
	dir := t.TempDir()
	tried, looked := filepath.Join(dir, "tried"), filepath.Join(dir, "looked")
	asked = fake(t, "podman", `container*) [ -e `+tried+` ] || exit 0; : >`+looked+`; exec /bin/sleep 60 ;;
rm*) : >`+tried+`; echo still mounted >&2; exit 1 ;;`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for _, err := os.Stat(looked); err != nil && t.Context().Err() == nil; _, err = os.Stat(looked) {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	check.Fails(t, Daemon("podman").Down(ctx, Of("/home")), "still mounted", asked())
}
