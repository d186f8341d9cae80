package app

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/host"
	"builder/internal/plan/recipe"
)

// An EngineChoice is an engine that was asked for and what may be asked of it.
type EngineChoice struct {
	Address    string // "" is the one that is found: Docker's, Podman's, or the native one
	Jobs       int    // builds at a time
	NativeOnly bool   // no other than the native one is taken
	Memory     int64  // bytes that they may take together; 0 is without a bound
}

// ParseEngine reads ADDRESS[#jobs=N&memory=SIZE]. An address that the client would
// refuse is refused now, not after everything was fetched.
func ParseEngine(place string, e EngineChoice) (EngineChoice, error) {
	address, said, _ := strings.Cut(place, "#")
	e.Address = address
	faults := []error{checkEngine(address)}
	if address == nativeName {
		e.Address, e.NativeOnly, faults = "", true, nil
	}
	facts, err := url.ParseQuery(said)
	if err != nil {
		return e, errors.Join(append(faults, diag.Errorf(diag.Usage, "--engine: %s: %w", place, err))...)
	}
	for name, values := range facts {
		var fault error
		switch last := values[len(values)-1]; name {
		case "jobs":
			if e.Jobs, fault = strconv.Atoi(last); fault == nil && e.Jobs < 1 {
				fault = fmt.Errorf("%d is not at least 1", e.Jobs)
			}
		case "memory":
			e.Memory, fault = recipe.ParseSize(last)
		default:
			fault = errors.New("an engine has jobs and memory")
		}
		if fault != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "--engine: %s: %s: %w", place, name, fault))
		}
	}
	return e, errors.Join(faults...)
}

// EngineKinds are the schemes that the Dagger client of native.Version connects
// to; some name a program too, as in container+podman.
var EngineKinds = []string{
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
	if place != "" && slices.Contains(EngineKinds, kind) {
		return nil
	}
	return diag.Errorf(diag.Usage, "--engine: %q is not the address of an engine", address).
		WithHint("write unix:///PATH, tcp://HOST:PORT or native; known: %s", strings.Join(EngineKinds, ", "))
}

// HostMemory is --memory in bytes, or the memory of this host where nothing is said.
func HostMemory(text string) (int64, error) {
	if text != "" {
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
