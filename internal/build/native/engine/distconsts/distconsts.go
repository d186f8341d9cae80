// Package distconsts replaces Dagger's nested module of the same name, because the Go
// module proxy does not serve it. It holds the constants compiled into the engine of
// Dagger v0.19.10: paths, names and default images.
//
// The names are those used in github.com/dagger/dagger@v0.19.10. The values are
// upstream's, unless a comment states a difference.
package distconsts

// Identity of the engine.
const (
	EngineContainerName = "dagger-engine.dev"
	EngineImage         = "dagger-engine.dev"

	// DefaultEngineSockAddr is an address on which the engine always listens, beside
	// those of --addr.
	DefaultEngineSockAddr = "unix:///run/dagger/engine.sock"
)

// Paths of the engine's helpers. builder mounts its own directory over /run/dagger in
// the engine's mount namespace, so the engine neither reads nor writes the host's
// /run/dagger. EngineCustomCACertsDir stays empty, because the engine would copy its
// certificates into every container.
const (
	RuncPath                         = "/run/dagger/bin/runc"
	DaggerInitPath                   = "/run/dagger/bin/dagger-init"
	EngineContainerBuiltinContentDir = "/run/dagger/content"
	EngineCustomCACertsDir           = "/run/dagger/ca-certificates"
)

// EngineDefaultStateDir is unused, because builder always passes --root.
const EngineDefaultStateDir = "/var/lib/dagger"

// Environment variables with the digests of the built-in SDK images. builder sets none.
const (
	GoSDKManifestDigestEnvName         = "DAGGER_GO_SDK_MANIFEST_DIGEST"
	PythonSDKManifestDigestEnvName     = "DAGGER_PYTHON_SDK_MANIFEST_DIGEST"
	TypescriptSDKManifestDigestEnvName = "DAGGER_TYPESCRIPT_SDK_MANIFEST_DIGEST"
)

// Default images of some core functions. builder does not call these functions.
const (
	AlpineVersion  = "3.22"
	AlpineImage    = "alpine:3.22"
	GolangVersion  = "1.25"
	GolangImage    = "golang:1.25-alpine"
	BusyboxVersion = "1.37.0"
	BusyboxImage   = "busybox:1.37.0"
)

// OCIVersionAnnotation is the annotation with an image's version.
const OCIVersionAnnotation = "org.opencontainers.image.version"
