package deb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
)

// A Request asks for the packages of a root file system: the essential and required
// packages of the first suite, the named packages, and all their dependencies.
// Recommended packages are left out.
type Request struct {
	Mirror   string // base address of the archive
	Suites   []Suite
	Packages []string
	Unpack   []string // packages without their dependencies
}

// A Suite is a release with apt's pin priority; 0 means apt's default of 500. Stale
// accepts an index after its Valid-Until date, as in snapshots and mirrors that are no
// longer updated. The signature is checked in both cases.
type Suite struct {
	Name       string   `yaml:"name" json:"name"`
	Components []string `yaml:"components" json:"components" jsonschema:"minItems=1"`
	Priority   int      `yaml:"priority,omitempty" json:"priority,omitempty"`
	Stale      bool     `yaml:"stale,omitempty" json:"stale,omitempty" jsonschema:"description=read the index past its Valid-Until: of a snapshot or a mirror that has stopped"`
}

// Resolve returns the packages of a request, sorted by name. It runs apt in its own
// tree below scratch. apt checks the signatures of the indexes with the host's Debian
// archive keyring.
func Resolve(ctx context.Context, scratch string, req Request) ([]Package, error) {
	a, err := newApt(scratch, req)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(a.dir)
	if _, err := a.run(ctx, "update", "-o", "Acquire::Retries=3", "--error-on=any"); err != nil {
		hint := "name other mirrors with BUILDER_MIRROR_DEBIAN"
		if strings.Contains(err.Error(), "is expired") {
			hint = "the mirror is out of date or a snapshot: name other mirrors with BUILDER_MIRROR_DEBIAN, or set `stale: true` at the suite of the image to accept an old index"
		}
		return nil, diag.Errorf(diag.Fetch, "reading the package indexes: %w", err).WithHint("%s", hint)
	}
	install := []string{
		"--yes", "install", "apt",
		"?narrow(?codename(" + a.main + "),?essential)",
		"?narrow(?codename(" + a.main + "),?priority(required))",
	}
	minimal, err := a.ask(ctx, "packages", install)
	if err != nil {
		return nil, err
	}
	all, err := a.ask(ctx, "packages", append(install, req.Packages...))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Bootstrap = slices.ContainsFunc(minimal, func(p Package) bool { return p.Name == all[i].Name })
	}
	if len(req.Unpack) > 0 {
		loose, err := a.ask(ctx, "packages to unpack", append([]string{"download"}, req.Unpack...))
		if err != nil {
			return nil, err
		}
		for _, p := range loose {
			p.Unpack = true
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y Package) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

// apt is an apt with its own configuration, indexes and status. It uses only the
// programs and the keyring of the host.
type apt struct {
	dir  string
	main string // the first suite
	base string // the mirror
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

func newApt(scratch string, req Request) (*apt, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, diag.Errorf(diag.Fetch, "this host has no apt, which resolves Debian packages").
			WithHint("run `builder lock` on Debian or Ubuntu, or in such a container, and copy the lock")
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, diag.Errorf(diag.Fetch, "the host has no Debian archive keyring: %w", err).
			WithHint("apt-get install debian-archive-keyring")
	}
	dir, err := os.MkdirTemp(scratch, "apt-*")
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, main: req.Suites[0].Name, base: strings.TrimSuffix(req.Mirror, "/") + "/"}
	for _, sub := range []string{"etc", "none", "lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	for name, text := range a.files(req) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// files returns the configuration files of the isolated apt, by path.
func (a *apt) files(req Request) map[string]string {
	var sources, pins strings.Builder
	for _, s := range req.Suites {
		options := "arch=amd64 signed-by=" + keyring
		if s.Stale {
			options += " check-valid-until=no"
		}
		fmt.Fprintf(&sources, "deb [%s] %s %s %s\n", options, a.base, s.Name, strings.Join(s.Components, " "))
		if s.Priority != 0 {
			fmt.Fprintf(&pins, "Package: *\nPin: release n=%s\nPin-Priority: %d\n\n", s.Name, s.Priority)
		}
	}
	conf := strings.ReplaceAll(`Dir "DIR";
Dir::Etc "DIR/etc"; Dir::Etc::SourceList "sources.list"; Dir::Etc::Preferences "preferences";
Dir::Etc::Parts "DIR/none"; Dir::Etc::SourceParts "DIR/none"; Dir::Etc::PreferencesParts "DIR/none"; Dir::Etc::TrustedParts "DIR/none";
Dir::State "DIR"; Dir::State::Lists "lists"; Dir::State::Status "DIR/status"; Dir::Cache "DIR/cache";
APT::Architecture "amd64"; APT::Architectures { "amd64"; }; APT::Install-Recommends "false";
Acquire::Languages "none"; Acquire::ForceHash "SHA256"; APT::Sandbox::User "root"; Debug::NoLocking "true";
`, "DIR", a.dir)
	return map[string]string{"etc/sources.list": sources.String(), "etc/preferences": pins.String(), "status": "", "apt.conf": conf}
}

// ask returns the packages that apt would fetch for a command.
func (a *apt) ask(ctx context.Context, what string, command []string) ([]Package, error) {
	out, err := a.run(ctx, append([]string{"-qq", "--print-uris"}, command...)...)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "resolving %s: %w", what, err).
			WithHint("correct the names in images/*.yaml")
	}
	return parseURIs(string(out), a.base)
}

// run runs apt-get and returns its output.
func (a *apt) run(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "LC_ALL=C")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(faultLines(stderr.String()), ctx.Err())
	}
	return out, nil
}

// faultLines returns apt's "E:" lines as an error, or all of the text if it has none.
func faultLines(text string) error {
	var errs []string
	for line := range strings.Lines(text) {
		if after, ok := strings.CutPrefix(strings.TrimSpace(line), "E: "); ok {
			errs = append(errs, after)
		}
	}
	if len(errs) == 0 {
		errs = []string{strings.TrimSpace(text)}
	}
	return errors.New(strings.Join(errs, "; "))
}

var uriLine = regexp.MustCompile(`^'([^']+)' (\S+)_(\S+)_(\w+)\.deb (\d+) SHA256:([0-9a-f]{64})$`)

// parseURIs parses the output of apt-get --print-uris:
//
//	'http://…/pool/main/m/make-dfsg/make_4.4.1-2_amd64.deb' make_4.4.1-2_amd64.deb 463104 SHA256:70a9…
func parseURIs(text, base string) ([]Package, error) {
	var packages []Package
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := uriLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("apt printed a line without a package: %q", line)
		}
		escaped, ok := strings.CutPrefix(m[1], base)
		if !ok {
			return nil, fmt.Errorf("the address of package %s is not below the mirror", m[2])
		}
		pool, err1 := url.PathUnescape(escaped)
		version, err2 := url.PathUnescape(m[3])
		size, err3 := strconv.ParseInt(m[5], 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("package %s: %w", m[2], err)
		}
		packages = append(packages, Package{Name: m[2], Version: version, Architecture: m[4], Path: pool, Size: size, SHA256: m[6]})
	}
	if len(packages) == 0 {
		return nil, errors.New("apt printed no packages")
	}
	return packages, nil
}
