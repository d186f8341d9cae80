package host

import (
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// A Choice is the requested engine and the limits for its use.
type Choice struct {
	Address    string // "" finds one: in Docker, in Podman, or the native engine
	Jobs       int    // cells at a time
	NativeOnly bool   // use only the native engine
}

// ParseEngine parses the address of an engine, which may be empty. It rejects addresses
// unsupported by the client, before anything is fetched.
func ParseEngine(address string) (c Choice, err error) {
	switch address {
	case "":
		return c, nil
	case nativeName:
		return Choice{NativeOnly: true}, nil
	}
	return Choice{Address: address}, checkEngine(address)
}

// kinds are the URL schemes supported by the Dagger client of version
// native.Version. A scheme can include a program, as in container+podman.
var kinds = []string{
	"unix", "tcp", "ssh", "kube-pod", "docker-container", "docker-image", "container", "image", "dagger-cloud",
}

// nativeName selects the native engine, which has no address until it runs.
const nativeName = "native"

func checkEngine(address string) error {
	scheme, place, _ := strings.Cut(address, "://")
	kind, _, _ := strings.Cut(scheme, "+")
	// A dialer's error message repeats an address it cannot parse. Without the scheme
	// the password in it would not be recognized and redacted.
	if user, _, found := strings.Cut(place, "@"); found && strings.Contains(user, ":") {
		return diag.Errorf(diag.Usage, "--engine: the address contains a password").
			WithHint("engines have no passwords: leave it out, and protect the socket")
	}
	if place != "" && slices.Contains(kinds, kind) {
		return nil
	}
	return diag.Errorf(diag.Usage, "--engine: %q is not the address of an engine", address).
		WithHint("write unix:///PATH, tcp://HOST:PORT or native; known: %s; without --engine, builder uses Docker or Podman if one answers", strings.Join(kinds, ", "))
}
