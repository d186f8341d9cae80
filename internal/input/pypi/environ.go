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

// uvOfPip names uv's variable for a setting of pip: whoever has configured pip
// alone has configured the index of the host.
var uvOfPip = map[string]string{
	"index-url":       "UV_DEFAULT_INDEX",
	"extra-index-url": "UV_INDEX",
	"trusted-host":    "UV_INSECURE_HOST",
	"cert":            "SSL_CERT_FILE",
}

// environ is the environment that uv gets: the user's, and where that is silent
// the store of certificates of the system, our cache, and the index of pip.
func (t Tool) environ(ctx context.Context) vars {
	env := variables(os.Environ())
	env.fill("UV_CACHE_DIR", t.cache)
	env.fill("UV_SYSTEM_CERTS", "true")
	env.fill("UV_PYTHON_DOWNLOADS", "never")
	if !env.configured() {
		for name, value := range pipSettings(ctx, env) {
			env.fill(uvOfPip[name], value)
		}
	}
	return env
}

// vars are environment variables by name.
type vars map[string]string

func variables(list []string) vars {
	v := vars{}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		v[name] = value
	}
	return v
}

func (v vars) fill(name, value string) {
	if v[name] == "" && value != "" {
		v[name] = value
	}
}

func (v vars) list() []string {
	var all []string
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// configured reports whether uv itself has been told of an index.
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

// indexes lists the addresses of indexes that the variables name.
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

// Indexes lists the addresses of Python package indexes that this host is
// configured to. They may hold credentials. It is empty where nothing is
// configured, or in a file of uv's own.
func Indexes(ctx context.Context) []string {
	return Tool{}.environ(ctx).indexes()
}

// authorise gives the files of an index the credentials that its variable holds:
// uv leaves them out of what it writes.
func (v vars) authorise(releases []release) {
	users := map[string]*url.Userinfo{} // by scheme and host
	for _, entry := range v.indexes() {
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

// pipSettings asks pip, if there is one, for what it is configured to; its
// variables count without it.
func pipSettings(ctx context.Context, env vars) map[string]string {
	settings := map[string]string{}
	if pip := findPip(ctx); pip != nil {
		out, err := exec.CommandContext(ctx, pip[0], append(slices.Clone(pip[1:]), "config", "list")...).Output()
		if err == nil {
			settings = parsePipConfig(string(out))
		}
	}
	for name := range uvOfPip {
		if value := env["PIP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))]; value != "" {
			settings[name] = value
		}
	}
	return settings
}

// pipLine is a line of `pip config list`: global.index-url='https://…'.
var pipLine = regexp.MustCompile(`^(?:global|download|install|:env:)\.([a-z-]+)=(['"])(.*)['"]$`)

// parsePipConfig returns the settings that uv has a name for. Pip lists what
// wins last; several values stand in one, with the line breaks escaped.
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

// findPip returns the command of a pip that works, or nil.
func findPip(ctx context.Context) []string {
	for _, pip := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if exec.CommandContext(ctx, pip[0], append(slices.Clone(pip[1:]), "--version")...).Run() == nil {
			return pip
		}
	}
	return nil
}
