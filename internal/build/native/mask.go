package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// prepare lays out the mask: what the engine finds in place of the host's
// directories. It clears away what a dead engine had in its namespaces:
// sockets, leases, temporary files, names of networks.
func (e *Engine) prepare(tools map[string]string) error {
	mask, names := e.path("mask"), "run/containers/cni/dnsname/"+e.id()
	if err := errors.Join(os.RemoveAll(mask), os.RemoveAll(e.path("state", "net"))); err != nil {
		return err
	}
	for _, dir := range []string{"etc/dagger", "run/dagger/bin", "run/dagger/sbin", "run/dagger/content", "run/dagger/tmp", names} {
		if err := os.MkdirAll(filepath.Join(mask, dir), 0o755); err != nil {
			return err
		}
	}
	for name, path := range e.helpers(tools) {
		if err := os.Symlink(path, filepath.Join(mask, "run/dagger/bin", name)); err != nil {
			return err
		}
	}
	files := map[string]string{
		"etc/dagger/engine.json": engineJSON,
		"etc/dagger/engine.toml": config,
		// Upstream has dnsmasq listen on every address, where systemd-resolved
		// or another dnsmasq already are; the bridge's is enough.
		"run/dagger/sbin/dnsmasq": "#!/bin/sh\nexec '" + tools["dnsmasq"] + "' --bind-dynamic \"$@\"\n",
		// The plugin dnsname fails where dnsmasq has not written this yet. No
		// process can have the number, so nobody is signalled.
		names + "/pidfile": "4194304\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(mask, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// helpers are the programs of /run/dagger/bin, where the engine looks for
// runc, for process 1 of its containers and for CNI plugins.
func (e *Engine) helpers(tools map[string]string) map[string]string {
	links := map[string]string{"runc": tools["runc"], "dagger-init": e.bin("init"), "dnsname": e.bin("dnsname")}
	for name, path := range tools {
		if plugin, ok := strings.CutPrefix(name, "cni/"); ok {
			links[plugin] = path
		}
	}
	return links
}

// engineJSON and config are the engine's configuration.
const engineJSON = `{"logLevel":"info"}` + "\n"

const config = "insecure-entitlements = [\"security.insecure\"]\n"

// configKey names all that an engine is started with and keeps until it ends.
func configKey() string {
	return hash(config, string(supervisor))[:12]
}

// engineEnv is the environment of the engine: what it needs to reach the
// network and to find programs. Upstream passes HTTP_PROXY and the like on to
// every exec, but not when they are written in small letters, which is enough
// for the engine itself: so a proxy of the host stays out of the builds.
func engineEnv(host []string) []string {
	env := []string{
		"PATH=/run/dagger/sbin:" + strings.Join(hostDirs().programs, ":"),
		"HOME=/run/dagger/tmp", "TMPDIR=/run/dagger/tmp", "DO_NOT_TRACK=1",
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

// inner is the engine's socket as it calls it itself, and as it stands in the
// kernel's list: short, and different for every home.
func (e *Engine) inner() string { return "/run/dagger/" + e.id() + ".sock" }

// outer is the same socket from outside of the mount namespace: a path in the
// home, or through a link where that is too long for a socket.
func (e *Engine) outer() string {
	if path := e.path("mask", e.inner()); len(path) <= maxSocket {
		return path
	}
	return filepath.Join(shared, e.id(), filepath.Base(e.inner()))
}

// maxSocket is the longest path of a socket that engine and client accept.
const maxSocket = 104
