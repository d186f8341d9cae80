package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// makeMask creates HOME/engine/mask: the directories the engine sees instead of the host's. It
// removes leftovers of a dead engine in them: sockets and temporary files.
func makeMask(dir, init, runc string) error {
	mask := filepath.Join(dir, "mask")
	err := errors.Join(os.RemoveAll(mask), os.RemoveAll(filepath.Join(dir, "state", "net")))
	for _, sub := range []string{"etc/dagger", "run/dagger/bin", "run/dagger/sbin", "run/dagger/content", "run/dagger/tmp"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(mask, sub), 0o755))
	}
	for name, text := range ownFiles {
		err = errors.Join(err, os.WriteFile(filepath.Join(mask, name), []byte(text), 0o755))
	}
	return errors.Join(err,
		os.Symlink(runc, filepath.Join(mask, "run/dagger/bin/runc")),
		os.Symlink(init, filepath.Join(mask, "run/dagger/bin/dagger-init")))
}

// ownFiles are the engine's configuration and the programs that builder wrote for it, by
// their paths in the engine's mount namespace.
var ownFiles = map[string]string{
	"etc/dagger/engine.json":      engineJSON,
	"etc/dagger/engine.toml":      config,
	"etc/dagger/network.conflist": networkConfig,
	runDir + "bin/loopback":       networkPlugin,
	runDir + "sbin/dnsmasq":       nameServer,
}

// engineJSON and config are the engine's configuration.
const engineJSON = `{"logLevel":"info"}` + "\n"

const config = `insecure-entitlements = ["security.insecure"]

[worker.oci]
networkMode = "cni"
cniConfigPath = "/etc/dagger/network.conflist"
`

// configKey identifies the settings of an engine that are fixed at its start.
func configKey() string {
	return hash(config, networkConfig, networkPlugin, nameServer, string(supervisor))[:12]
}

// engineEnv returns the environment of the engine, for network access and finding
// programs. Upstream passes HTTP_PROXY and similar variables to every exec, but not
// their lower-case forms. The engine itself accepts these, so engineEnv uses lower case
// and keeps the host's proxy out of builds. With GOGC=200 the engine collects garbage
// less often and takes some 100 MB more memory.
func engineEnv(host []string) []string {
	env := []string{
		"PATH=/run/dagger/sbin:" + strings.Join(hostDirs(), ":"),
		"HOME=/run/dagger/tmp", "TMPDIR=/run/dagger/tmp", "DO_NOT_TRACK=1", "GOGC=200",
	}
	for _, kv := range host {
		name, value, _ := strings.Cut(kv, "=")
		switch lower := strings.ToLower(name); lower {
		case "http_proxy", "https_proxy", "no_proxy", "all_proxy":
			env = append(env, lower+"="+value)
		case "ssl_cert_file", "ssl_cert_dir":
			env = append(env, kv)
		}
	}
	return env
}
