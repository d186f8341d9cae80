package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"builder/internal/machine/host"
)

// answered is the answer of a server and the time of its arrival.
type answered struct {
	host.Answer
	err error
	at  time.Time // by this host's clock
}

// parallel is the number of concurrent requests.
const parallel = 8

// ask queries addresses, each once per examination.
func (e *exam) ask(ctx context.Context, addresses []string) map[string]answered {
	var wanted []string
	for _, address := range addresses {
		if _, asked := e.answers[address]; !asked && !slices.Contains(wanted, address) {
			wanted = append(wanted, address)
		}
	}
	got := make([]answered, len(wanted))
	all := pool.New().WithMaxGoroutines(parallel)
	for i, address := range wanted {
		all.Go(func() { got[i] = e.askOne(ctx, address) })
	}
	all.Wait()
	for i, address := range wanted {
		e.answers[address] = got[i]
	}
	return e.answers
}

// ports are the default ports of protocols other than HTTP. For these an open port is
// enough.
var ports = map[string]string{"ssh": "22", "git": "9418"}

func (e *exam) askOne(ctx context.Context, address string) answered {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return answered{err: errors.New("not the address of a host"), at: e.Now()}
	}
	if port, known := ports[u.Scheme]; known {
		err := e.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
		return answered{err: err, at: e.Now()}
	}
	answer, err := e.Ask(ctx, address)
	return answered{answer, err, e.Now()}
}

// reach checks whether each place answers. Any answer of the server itself counts, even
// 401.
func (e *exam) reach(ctx context.Context, places []Place) (lines []string, silent []string) {
	var addresses []string
	for _, p := range places {
		addresses = append(addresses, p.URL)
	}
	answers := e.ask(ctx, addresses)
	for _, p := range places {
		a := answers[p.URL]
		state := "answers"
		if a.Status > 0 {
			state = fmt.Sprintf("answers %d", a.Status)
		}
		if problem := a.problem(); problem != "" {
			state = problem
			silent = append(silent, hostOf(p.URL))
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", hostOf(p.URL), p.For, state))
	}
	slices.Sort(silent)
	return lines, slices.Compact(silent)
}

// problem returns the reason why an answer does not count, or "".
func (a answered) problem() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.Status == 407:
		return "the proxy requires a password (407)"
	case a.Status >= 500:
		return fmt.Sprintf("answers %d", a.Status)
	}
	return ""
}

// hostOf returns the host of an address, without its password and path.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address without a host"
	}
	return u.Host
}

const (
	noRecipe = "not checked: `builder doctor RECIPE` checks the servers of its inputs"
	proxies  = "set HTTPS_PROXY, HTTP_PROXY and NO_PROXY for proxies; without a network, copy the inputs with `builder store import`"
)

// mirror queries the configured Debian archives. One working archive is enough.
func mirror(ctx context.Context, e *exam) Finding {
	r := e.work.Recipe
	switch {
	case r == nil:
		return unknown("%s", noRecipe)
	case !r.Debian:
		return none("the cell needs no Debian archive")
	case len(r.Mirrors) == 0:
		return fail("no mirror: the host's apt configuration has no Debian archive").
			remedy("set BUILDER_MIRROR_DEBIAN to the address of a mirror")
	}
	var lines, silent []string
	var places []Place
	for _, m := range r.Mirrors {
		if dir, isFile := strings.CutPrefix(m, "file:"); isFile {
			dir = "/" + strings.TrimLeft(dir, "/")
			lines = append(lines, dir+": a directory of this host")
			if !e.Exists(dir) {
				silent = append(silent, dir)
			}
			continue
		}
		places = append(places, Place{For: "Debian packages", URL: strings.TrimSuffix(m, "/") + "/"})
	}
	more, others := e.reach(ctx, places)
	lines, silent = append(lines, more...), append(silent, others...)
	const set = "set BUILDER_MIRROR_DEBIAN to a mirror that answers; "
	switch {
	case len(silent) == 0:
		return ok("%s", e.mirrorNames()).detail(lines...)
	case len(silent) < len(r.Mirrors):
		return warn("%s: no answer from %s", e.mirrorNames(), strings.Join(silent, ", ")).remedy(set + proxies).detail(lines...)
	}
	return fail("%s: no answer", e.mirrorNames()).remedy(set + proxies).detail(lines...)
}

func (e *exam) mirrorNames() string {
	var names []string
	for _, m := range e.work.Recipe.Mirrors {
		if dir, isFile := strings.CutPrefix(m, "file:"); isFile {
			names = append(names, "/"+strings.TrimLeft(dir, "/"))
			continue
		}
		names = append(names, hostOf(m))
	}
	return strings.Join(slices.Compact(names), ", ")
}

// pythonIndex queries the indexes configured for uv and pip.
func pythonIndex(ctx context.Context, e *exam) Finding {
	r := e.work.Recipe
	switch {
	case r == nil:
		return unknown("%s", noRecipe)
	case !r.Python:
		return none("the cell needs no Python package index")
	case len(r.Programs) > 0 && !r.Pip:
		return e.noPip(strings.Join(r.Programs, " and "))
	case len(r.Indexes) == 0 && !r.Pip:
		return unknown("the environment names no index, and without pip the default one cannot be asked").
			remedy("set UV_DEFAULT_INDEX=URL, or install pip")
	case len(r.Indexes) == 0 && r.Answer != nil:
		return fail("the default index gives pip no answer").detail(r.Answer.Error()).
			remedy("set UV_DEFAULT_INDEX=URL and index-url in pip's configuration to an index that answers; " + proxies)
	case len(r.Indexes) == 0:
		return ok("the default index answers pip")
	}
	var places []Place
	for _, index := range r.Indexes {
		places = append(places, Place{For: "Python packages", URL: index})
	}
	return e.answer(ctx, places, "set UV_DEFAULT_INDEX to an index that answers; "+proxies)
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

// upstream queries the repositories and registries of the recipe.
func upstream(ctx context.Context, e *exam) Finding {
	r := e.work.Recipe
	switch {
	case r == nil:
		return unknown("%s", noRecipe)
	case len(r.Places) == 0:
		return none("the cell needs no repository or registry")
	}
	return e.answer(ctx, r.Places, "")
}

// instead returns the other ways to the inputs of silent places.
func instead(silent []Place) string {
	var ways []string
	for _, way := range []struct{ prefix, remedy string }{
		{SourcePlace, "name another place of the source with --set source.NAME=PATH|URL"},
		{ImagePlace, "name an engine that reaches the registry or has the image with --engine URL"},
		{ModulePlace, "set GOPROXY to a proxy that answers"},
	} {
		if slices.ContainsFunc(silent, func(p Place) bool { return strings.HasPrefix(p.For, way.prefix) }) {
			ways = append(ways, way.remedy)
		}
	}
	return strings.Join(append(ways, proxies), "; ")
}

// answer returns the finding for places that must all answer. A silent place is only a
// warning if its files may already be on this host. An empty remedy stands for the one
// that fits the silent places.
func (e *exam) answer(ctx context.Context, places []Place, remedy string) Finding {
	lines, silent := e.reach(ctx, places)
	if remedy == "" {
		remedy = instead(slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return !slices.Contains(silent, hostOf(p.URL)) }))
	}
	needed := slices.ContainsFunc(places, func(p Place) bool { return !p.Cached && slices.Contains(silent, hostOf(p.URL)) })
	switch {
	case len(silent) == 0:
		return ok("%s", hostsOf(places)).detail(lines...)
	case !needed:
		return warn("no answer from %s; the engine may already have its images", strings.Join(silent, ", ")).remedy("%s", remedy).detail(lines...)
	}
	return fail("no answer from %s", strings.Join(silent, ", ")).remedy("%s", remedy).detail(lines...)
}

func hostsOf(places []Place) string {
	var names []string
	for _, p := range places {
		names = append(names, hostOf(p.URL))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// Limits for the error of the clock. The validity of certificates
// depends on the clock. A poorly kept clock is off by about a minute.
const (
	clockWarn = time.Minute
	clockFail = time.Hour
)

// clock compares this host's time with the Date headers of the answers received so far.
// The median is robust against one wrong server clock.
func clock(_ context.Context, e *exam) Finding {
	if e.work.Recipe == nil {
		return unknown("%s", noRecipe)
	}
	var off []time.Duration
	for _, a := range e.answers {
		if a.err == nil && !a.Date.IsZero() {
			off = append(off, a.at.Sub(a.Date))
		}
	}
	if len(off) == 0 {
		return unknown("no server sent the time")
	}
	slices.Sort(off)
	median := off[len(off)/2].Round(time.Second)
	text := fmt.Sprintf("%v from the time of %s", median.Abs(), count(len(off), "server"))
	const set = "set the clock: timedatectl set-ntp true"
	switch {
	case median.Abs() > clockFail:
		return fail("%s", text).remedy(set)
	case median.Abs() > clockWarn:
		return warn("%s", text).remedy(set)
	}
	return ok("within %v of the time of %s", clockWarn, count(len(off), "server"))
}
