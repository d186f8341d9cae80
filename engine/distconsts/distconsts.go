// Package distconsts stands in for the nested module of the same name, which
// the Go module proxy does not serve. It holds the constants that Dagger
// v0.19.10 compiles into its engine: paths, names and default images.
//
// Names are those that github.com/dagger/dagger@v0.19.10 refers to; values
// follow upstream except where a comment says otherwise.
package distconsts

// Identity of the engine.
const (
	EngineContainerName = "dagger-engine.dev"
	EngineImage         = "dagger-engine.dev"

	// DefaultEngineSockAddr is always listened on, whatever --addr says.
	DefaultEngineSockAddr = "unix:///run/dagger/engine.sock"
)

// Paths at which the engine looks for its helpers. builder mounts a directory
// of its own over /run/dagger inside the engine's mount namespace, so nothing
// of this is looked for in, or written to, the host's directories. The last
// one stays empty: certificates found there would go into every container.
const (
	RuncPath                         = "/run/dagger/bin/runc"
	DaggerInitPath                   = "/run/dagger/bin/dagger-init"
	EngineContainerBuiltinContentDir = "/run/dagger/content"
	EngineCustomCACertsDir           = "/run/dagger/ca-certificates"
)

// EngineDefaultStateDir is never used: builder always gives --root.
const EngineDefaultStateDir = "/var/lib/dagger"

// Environment variables that name the built-in SDK images; builder sets none.
const (
	GoSDKManifestDigestEnvName         = "DAGGER_GO_SDK_MANIFEST_DIGEST"
	PythonSDKManifestDigestEnvName     = "DAGGER_PYTHON_SDK_MANIFEST_DIGEST"
	TypescriptSDKManifestDigestEnvName = "DAGGER_TYPESCRIPT_SDK_MANIFEST_DIGEST"
)

// Images that some core functions fall back to; builder calls none of them.
const (
	AlpineVersion  = "3.22"
	AlpineImage    = "alpine:3.22"
	GolangVersion  = "1.25"
	GolangImage    = "golang:1.25-alpine"
	BusyboxVersion = "1.37.0"
	BusyboxImage   = "busybox:1.37.0"
)

// OCIVersionAnnotation is the annotation that carries an image's version.
const OCIVersionAnnotation = "org.opencontainers.image.version"
