package pipelines

import (
	"dagger.io/dagger"

	"builder/internal/lock"
)

// Capabilities that a step keeps, as setpriv writes a set.
const (
	noCaps = "-all"
	// installCaps is what dpkg and maintainer scripts need to own files and to
	// change user; it is a part of what a container has by default.
	installCaps = "-all,+chown,+dac_override,+fowner,+fsetid,+setgid,+setuid,+setfcap,+kill"
)

// offline adds an exec without a network: a network namespace with nothing but
// loopback, and no capability beyond caps. The SDK has no switch for it
// (v0.19.10), hence the privileged exec that gives up what it was given.
func offline(ctr *dagger.Container, img lock.Image, caps string, args []string, opts dagger.ContainerWithExecOpts) *dagger.Container {
	opts.InsecureRootCapabilities = true
	return ctr.
		WithEnvVariable("BUILDER_LOOPBACK", script("loopback.py")).
		WithExec(append([]string{"sh", "-c", script("offline.sh"), "offline", img.Python, caps}, args...), opts).
		WithoutEnvVariable("BUILDER_LOOPBACK")
}

// shell is the argument vector that runs a script with both streams in one, so
// that a log keeps its order.
func shell(script string) []string { return []string{"sh", "-euc", "exec 2>&1\n" + script} }
