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
)

// otherSources is the remedy for a silent server.
const otherSources = "set HTTPS_PROXY, HTTP_PROXY and NO_PROXY for proxies, or name another server: BUILDER_MIRROR_DEBIAN for Debian packages, " +
	"UV_DEFAULT_INDEX and pip's index-url for Python packages, --set source.NAME=PATH|URL for a source, --engine URL for an engine that has the images, GOPROXY for Go modules; " +
	"without a network, copy the inputs with `builder store import`"

// parallel is the number of concurrent requests.
const parallel = 8

// sources queries the servers of the inputs that are still to be fetched. A silent one is
// only a warning if another server has the same inputs, or they may be on this host.
func sources(ctx context.Context, e *exam) Finding {
	r := e.work.Recipe
	if r == nil {
		return unknown("not checked: `builder doctor RECIPE` checks the servers of its inputs")
	}
	if len(r.Places) == 0 {
		return none("nothing is to be fetched")
	}
	problems := make([]string, len(r.Places))
	all := pool.New().WithMaxGoroutines(parallel)
	for i, p := range r.Places {
		all.Go(func() { problems[i] = e.problem(ctx, p) })
	}
	all.Wait()
	var lines, answering, quiet []string
	served := map[string]bool{} // by what they are for
	for i, p := range r.Places {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", p.host(), p.For, cmp.Or(problems[i], "answers")))
		if problems[i] == "" {
			answering, served[p.For] = append(answering, p.host()), true
		} else {
			quiet = append(quiet, p.host())
		}
	}
	verdict := OK
	for i, p := range r.Places {
		switch {
		case problems[i] == "":
		case served[p.For] || p.Cached:
			verdict = max(verdict, Warn)
		default:
			verdict = Fail
		}
	}
	switch silent := strings.Join(sorted(quiet), ", "); verdict {
	case OK:
		return ok("%s", strings.Join(sorted(answering), ", ")).detail(lines...)
	case Warn:
		return warn("no answer from %s, whose inputs may be here or elsewhere", silent).remedy(otherSources).detail(lines...)
	default:
		return fail("no answer from %s", silent).remedy(otherSources).detail(lines...)
	}
}

// sorted returns the names in order, each once.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// ports are the default ports of protocols other than HTTP. For these an open port is
// enough.
var ports = map[string]string{"ssh": "22", "git": "9418"}

// problem returns the reason why a place cannot be used, or "". Any answer of the server
// itself counts, even 401.
func (e *exam) problem(ctx context.Context, p Place) string {
	if p.Ask != nil {
		if err := p.Ask(ctx); err != nil {
			return err.Error()
		}
		return ""
	}
	if dir, isFile := strings.CutPrefix(p.URL, "file:"); isFile {
		if !e.Exists("/" + strings.TrimLeft(dir, "/")) {
			return "the directory does not exist"
		}
		return ""
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return "not the address of a host"
	}
	status := 0
	if port, known := ports[u.Scheme]; known {
		err = e.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	} else {
		status, err = e.Ask(ctx, p.URL)
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
	if p.Ask != nil {
		return p.URL
	}
	if dir, isFile := strings.CutPrefix(p.URL, "file:"); isFile {
		return "/" + strings.Trim(dir, "/")
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return "an address without a host"
	}
	return u.Host
}
