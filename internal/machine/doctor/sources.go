package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/machine/host"
)

// sources queries the servers of the inputs that are still to be fetched.
func sources(ctx context.Context, e *exam) Finding {
	r := e.work.Recipe
	if r == nil {
		return unknown("not checked: `builder doctor RECIPE` checks the servers of its inputs")
	}
	var parts []Finding
	if r.Debian && r.fetches() {
		parts = append(parts, e.mirrors(ctx))
	}
	if r.Python && r.fetches() {
		parts = append(parts, e.pythonIndex(ctx))
	}
	if len(r.Places) > 0 {
		f, _ := e.reach(ctx, r.Places)
		parts = append(parts, f)
	}
	if len(parts) == 0 {
		return none("nothing is to be fetched")
	}
	return merge(parts)
}

// mirrors queries the configured Debian archives. One working archive is enough.
func (e *exam) mirrors(ctx context.Context) Finding {
	var places []Place
	for _, m := range e.work.Recipe.Mirrors {
		places = append(places, Place{For: "Debian packages", URL: strings.TrimSuffix(m, "/") + "/"})
	}
	if len(places) == 0 {
		return fail("no mirror: the host's apt configuration has no Debian archive").
			remedy("set BUILDER_MIRROR_DEBIAN to the address of a mirror")
	}
	f, silent := e.reach(ctx, places)
	if f.Verdict == Fail && silent < len(places) {
		f.Verdict = Warn
	}
	return f
}

// pythonIndex queries the indexes configured for uv and pip.
func (e *exam) pythonIndex(ctx context.Context) Finding {
	r := e.work.Recipe
	switch {
	case len(r.Programs) > 0 && !r.Pip:
		return e.noPip(strings.Join(r.Programs, " and "))
	case len(r.Indexes) == 0 && !r.Pip:
		return unknown("the environment names no index, and without pip the default one cannot be asked").
			remedy("set UV_DEFAULT_INDEX=URL, or install pip")
	case len(r.Indexes) == 0 && r.Answer != nil:
		return fail("the default index gives pip no answer").detail(r.Answer.Error()).remedy(otherSources)
	case len(r.Indexes) == 0:
		return ok("the default index answers pip")
	}
	var places []Place
	for _, index := range r.Indexes {
		places = append(places, Place{For: "Python packages", URL: index})
	}
	f, _ := e.reach(ctx, places)
	return f
}

// noPip returns the finding for a host without pip that has to fetch programs.
func (e *exam) noPip(programs string) Finding {
	const install = "apt-get install --no-install-recommends python3-pip"
	_, apt := e.Program("apt-get", host.ProgramDirs(e.Path))
	if apt && !e.work.Engine.NoInstall && e.effectiveUser() == "0" {
		return warn("no pip, which fetches %s; the first run installs it", programs).remedy(install)
	}
	return fail("no pip, which fetches %s", programs).remedy("install pip (Debian and Ubuntu: %s)", install)
}

// otherSources is the remedy for a silent server.
const otherSources = "set HTTPS_PROXY, HTTP_PROXY and NO_PROXY for proxies, or name another server: BUILDER_MIRROR_DEBIAN for Debian packages, " +
	"UV_DEFAULT_INDEX and pip's index-url for Python packages, --set source.NAME=PATH|URL for a source, --engine URL for an engine that has the images, GOPROXY for Go modules; " +
	"without a network, copy the inputs with `builder store import`"

// parallel is the number of concurrent requests.
const parallel = 8

// reach checks whether each place answers, and counts the silent ones. A silent place is
// only a warning if its files may already be on this host.
func (e *exam) reach(ctx context.Context, places []Place) (f Finding, silent int) {
	problems := make([]string, len(places))
	all := pool.New().WithMaxGoroutines(parallel)
	for i, p := range places {
		all.Go(func() { problems[i] = e.problem(ctx, p.URL) })
	}
	all.Wait()
	var lines, answering, quiet []string
	verdict := OK
	for i, p := range places {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", p.host(), p.For, cmp.Or(problems[i], "answers")))
		switch {
		case problems[i] == "":
			answering = append(answering, p.host())
			continue
		case !p.Cached:
			verdict = Fail
		case verdict == OK:
			verdict = Warn
		}
		quiet = append(quiet, p.host())
		silent++
	}
	f = found(verdict, "%s", strings.Join(sorted(answering), ", "))
	if silent > 0 {
		f = found(verdict, "no answer from %s", strings.Join(sorted(quiet), ", ")).remedy(otherSources)
	}
	if verdict == Warn {
		f.Found += "; the engine may already have its images"
	}
	return f.detail(lines...), silent
}

// sorted returns the names in order, each once.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// ports are the default ports of protocols other than HTTP. For these an open port is
// enough.
var ports = map[string]string{"ssh": "22", "git": "9418"}

// problem returns the reason why an address cannot be used, or "". Any answer of the
// server itself counts, even 401.
func (e *exam) problem(ctx context.Context, address string) string {
	if dir, isFile := strings.CutPrefix(address, "file:"); isFile {
		if !e.Exists("/" + strings.TrimLeft(dir, "/")) {
			return "the directory does not exist"
		}
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "not the address of a host"
	}
	status := 0
	if port, known := ports[u.Scheme]; known {
		err = e.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	} else {
		status, err = e.Ask(ctx, address)
	}
	switch {
	case err != nil:
		return err.Error()
	case status == 407:
		return "the proxy requires a password (407)"
	case status >= 500:
		return fmt.Sprintf("answers %d", status)
	}
	return ""
}

// host returns the host of a place, without its password and path.
func (p Place) host() string {
	if dir, isFile := strings.CutPrefix(p.URL, "file:"); isFile {
		return "/" + strings.Trim(dir, "/")
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return "an address without a host"
	}
	return u.Host
}
