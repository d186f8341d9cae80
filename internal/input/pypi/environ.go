package pypi

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/input/store"
)

// uvOfPip maps pip's settings to uv's variables, so that a pip configuration alone is
// enough to name the host's index.
var uvOfPip = map[string]string{
	"index-url":       "UV_DEFAULT_INDEX",
	"extra-index-url": "UV_INDEX",
	"trusted-host":    "UV_INSECURE_HOST",
	"cert":            "SSL_CERT_FILE",
}

// ownEnviron returns the environment for uv: the user's variables, with defaults for those
// not set. The defaults are the system's certificates and the cache of this tool.
func (t Tool) ownEnviron() vars {
	env := vars{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	env.fill("UV_CACHE_DIR", t.cache)
	env.fill("UV_SYSTEM_CERTS", "true")
	env.fill("UV_PYTHON_DOWNLOADS", "never")
	return env
}

// environ is like ownEnviron, with the index of pip as a further default.
func (t Tool) environ(ctx context.Context) vars {
	env := t.ownEnviron()
	if env.configured() {
		return env
	}
	if pip := FindPip(ctx); pip != nil {
		out, _ := PipCommand(ctx, pip, "config", "list").Output() // without an answer it has no settings
		for name, value := range parsePipConfig(string(out)) {
			env.fill(uvOfPip[name], value)
		}
	}
	return env
}

// vars holds environment variables by name.
type vars map[string]string

func (v vars) fill(name, value string) {
	if v[name] == "" && value != "" {
		v[name] = value
	}
}

func (v vars) list() (all []string) {
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	return all
}

// configured reports whether uv's own configuration names an index.
func (v vars) configured() bool {
	for _, name := range []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_NO_INDEX", "UV_CONFIG_FILE"} {
		if v[name] != "" {
			return true
		}
	}
	home := v["XDG_CONFIG_HOME"]
	if home == "" {
		home = filepath.Join(v["HOME"], ".config")
	}
	dirs := append([]string{home, "/etc"}, filepath.SplitList(v["XDG_CONFIG_DIRS"])...)
	return slices.ContainsFunc(dirs, func(dir string) bool {
		data, err := os.ReadFile(filepath.Join(dir, "uv", "uv.toml"))
		return err == nil && strings.Contains(string(data), "index")
	})
}

// indexes lists the addresses of the indexes in the variables.
func (v vars) indexes() []string {
	var all []string
	for _, name := range []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"} {
		for entry := range strings.FieldsSeq(v[name]) {
			if label, address, ok := strings.Cut(entry, "="); ok && !strings.Contains(label, ":") {
				entry = address // name=https://…
			}
			all = append(all, entry)
		}
	}
	return all
}

// authorise adds the credentials in the addresses of indexes to the addresses of their
// files. uv leaves credentials out of its output.
func authorise(releases []release, indexes []string) {
	users := map[string]*url.Userinfo{} // by scheme and host
	for _, entry := range indexes {
		if u, err := url.Parse(entry); err == nil && u.User != nil {
			users[u.Scheme+"://"+u.Host] = u.User
		}
	}
	for _, r := range releases {
		for i, f := range r.files {
			u, err := url.Parse(string(f.source))
			if err == nil && u.User == nil && users[u.Scheme+"://"+u.Host] != nil {
				u.User = users[u.Scheme+"://"+u.Host]
				r.files[i].source = store.Place(u.String())
			}
		}
	}
}

// pipLine is a line of `pip config list`: global.index-url='https://…'.
var pipLine = regexp.MustCompile(`^(?:global|download|install|:env:)\.([a-z-]+)=(['"])(.*)['"]$`)

// parsePipConfig returns the settings with a uv equivalent. pip lists the effective
// setting last. A setting with several values is one line with escaped line breaks.
func parsePipConfig(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		m := pipLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || uvOfPip[m[1]] == "" {
			continue
		}
		settings[m[1]] = strings.Join(strings.Fields(strings.ReplaceAll(m[3], `\n`, " ")), " ")
	}
	return settings
}

// FindPip returns the command of a working pip, or nil.
func FindPip(ctx context.Context) []string {
	for _, pip := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if PipCommand(ctx, pip, "--version").Run() == nil {
			return pip
		}
	}
	return nil
}

// PipCommand returns a command of pip that runs in the root directory: `python3 -m pip`
// would take a directory pip/ of the working directory, such as a checkout, for pip.
func PipCommand(ctx context.Context, pip []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, pip[0], slices.Concat(pip[1:], args)...)
	cmd.Dir = "/"
	return cmd
}
