package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/machine/host"
	"builder/internal/plan/recipe"
)

// engineChoice is an engine that was asked for and what may be asked of it.
type engineChoice struct {
	address string // "" is the one that is found: Docker's, Podman's, or the native one
	jobs    int    // builds at a time
	native  bool   // no other than the native one is taken
	memory  int64  // bytes that they may take together; 0 is without a bound
}

func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "address of a Dagger engine: a `URL` with unix, tcp, ssh, docker-container or kube-pod; native takes no Docker or Podman; given twice, both take cells; '#jobs=4&memory=64GB' behind it says how many"},
		noInstallFlag(),
		idleFlag(),
		cacheFlag(),
	}
}

// readEngines reads every --engine. What an address does not say of itself
// --jobs and --memory say.
func readEngines(c *cli.Context, jobs int) ([]engineChoice, error) {
	memory, fault := hostMemory(c)
	places := slices.DeleteFunc(c.StringSlice("engine"), func(place string) bool { return place == "" }) // BUILDER_ENGINE may be set and empty
	if len(places) == 0 {
		return []engineChoice{{jobs: max(jobs, 1), memory: memory}}, fault
	}
	if !c.IsSet("memory") {
		memory = 0 // nobody knows where a named engine runs
	}
	faults := []error{fault}
	var engines []engineChoice
	for _, place := range places {
		e, err := readEngine(place, engineChoice{jobs: max(jobs, 1), memory: memory})
		if slices.ContainsFunc(engines, func(o engineChoice) bool { return o.address == e.address }) {
			err = cmp.Or(err, error(diag.Errorf(diag.Usage, "--engine: %s is there twice", e.address)))
		}
		engines, faults = append(engines, e), append(faults, err)
	}
	return engines, errors.Join(faults...)
}

// hostMemory is --memory in bytes, or the memory of this host.
func hostMemory(c *cli.Context) (int64, error) {
	if text := c.String("memory"); text != "" {
		bytes, err := recipe.ParseSize(text)
		if err != nil {
			return 0, diag.Errorf(diag.Usage, "--memory: %w", err)
		}
		return bytes, nil
	}
	bytes, err := host.This().Memory()
	if err != nil {
		return 0, nil // a host without /proc: the builds run elsewhere
	}
	return bytes, nil
}

// readEngine reads ADDRESS[#jobs=N&memory=SIZE]. An address that the client would
// refuse is refused now, not after everything was fetched.
func readEngine(place string, e engineChoice) (engineChoice, error) {
	address, said, _ := strings.Cut(place, "#")
	e.address = address
	faults := []error{checkEngine(address)}
	if address == nativeName {
		e.address, e.native, faults = "", true, nil
	}
	facts, err := url.ParseQuery(said)
	if err != nil {
		return e, errors.Join(append(faults, diag.Errorf(diag.Usage, "--engine: %s: %w", place, err))...)
	}
	for name, values := range facts {
		var fault error
		switch last := values[len(values)-1]; name {
		case "jobs":
			if e.jobs, fault = strconv.Atoi(last); fault == nil && e.jobs < 1 {
				fault = fmt.Errorf("%d is not at least 1", e.jobs)
			}
		case "memory":
			e.memory, fault = recipe.ParseSize(last)
		default:
			fault = errors.New("an engine has jobs and memory")
		}
		if fault != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "--engine: %s: %s: %w", place, name, fault))
		}
	}
	return e, errors.Join(faults...)
}

// engineKinds are the schemes that the Dagger client of native.Version connects
// to; some name a program too, as in container+podman.
var engineKinds = []string{
	"unix", "tcp", "ssh", "kube-pod", "docker-container", "docker-image", "container", "image", "dagger-cloud",
}

// nativeName is the engine that has no address until it runs.
const nativeName = "native"

func checkEngine(address string) error {
	scheme, place, _ := strings.Cut(address, "://")
	kind, _, _ := strings.Cut(scheme, "+")
	// A dialer repeats what it cannot read, without the scheme by which a password is
	// known for one.
	if user, _, found := strings.Cut(place, "@"); found && strings.Contains(user, ":") {
		return diag.Errorf(diag.Usage, "--engine: the address of an engine holds no password").
			WithHint("an engine asks for none: leave it out, and protect the socket")
	}
	if place != "" && slices.Contains(engineKinds, kind) {
		return nil
	}
	return diag.Errorf(diag.Usage, "--engine: %q is not the address of an engine", address).
		WithHint("write unix:///PATH, tcp://HOST:PORT or native; known: %s", strings.Join(engineKinds, ", "))
}
