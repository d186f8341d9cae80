package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Name is the name of the configuration file.
const Name = "builder.yaml"

// Override is the variable with the path of the only file to read. If it is set but
// empty, no file is read.
const Override = "BUILDER_CONFIG"

// maxBytes limits the size of a configuration file.
const maxBytes = 64 << 10

// A Config is the merged content of the configuration files.
type Config struct {
	Files    []string // the files read, nearest first
	Settings []Setting
}

// A Host describes the environment of this process for [Load].
type Host struct {
	Dir    string // absolute working directory, "" if it was deleted
	User   string // the user's configuration directory, or ""
	Home   string // the user's home directory, or ""
	Lookup func(name string) (value string, ok bool)
}

// This returns the host of this process. Unknown directories are "" and not searched.
func This() Host {
	known := func(dir string, err error) string {
		if err != nil {
			return ""
		}
		return dir
	}
	return Host{Dir: known(os.Getwd()), User: known(os.UserConfigDir()), Home: known(os.UserHomeDir()), Lookup: os.LookupEnv}
}

// Load reads the configuration files of a host. It reports all errors of all files
// together. Each has the class [diag.Usage] and a position.
func Load(host Host) (Config, error) {
	paths, err := host.paths()
	errs := []error{err}
	var all Config
	for _, path := range paths {
		data, err := host.readBounded(path)
		var one Config
		if err == nil {
			one, err = read(host.short(path), base{filepath.Dir(path), host}, data)
		}
		errs = append(errs, err)
		if host.found(path) {
			errs = append(errs, host.presumes(filepath.Dir(path), one))
		}
		all = all.under(path, one)
	}
	return all, errors.Join(errs...)
}

// found reports whether a file was found by searching from the working directory. Such
// a file is not trusted like the user's own file or the file of [Override].
func (h Host) found(path string) bool {
	_, named := h.Lookup(Override)
	return !named && path != h.own()
}

// foundKeys are the keys that a file found beside the work may set. They choose what is
// built and how, and no program, address, identity, trust or place elsewhere. Every
// other key is refused there, a new one too.
var foundKeys = []string{
	"recipes", "out", "jobs", "memory", "fail-fast", "locked", "offline", "step-limit", "tests", "ccache", "progress",
}

// FoundKeys lists the keys that a file in or above the working directory may set.
func FoundKeys() []string { return slices.Clone(foundKeys) }

// presumes rejects other keys than foundKeys, and directories outside of dir, in a file
// that was found in dir. Otherwise an untrusted checkout could choose the programs that
// run, the trusted keys, where a token is sent, and which directory is overwritten.
func (h Host) presumes(dir string, c Config) error {
	var errs []error
	for _, s := range c.Settings {
		var why error
		switch {
		case !slices.Contains(foundKeys, s.Key):
			why = errors.New("a file in or above the working directory cannot set this key")
		case s.Key == "recipes" || s.Key == "out":
			why = h.below(dir, s.Value)
		}
		if why != nil {
			errs = append(errs, diag.At(s.Pos, "%s: %w", s.Key, why).
				WithHint("set it in builder/builder.yaml of your configuration directory or in %s; or, if you trust this file, name it: %s=FILE", Variable(s.Key), Override))
		}
	}
	return errors.Join(errs...)
}

// below returns an error unless a path that need not exist lies below the directory dir,
// also after all links.
func (h Host) below(dir, path string) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Dir, path)
	}
	rest, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rest) {
		return fmt.Errorf("a file in or above the working directory cannot name a directory outside of its own, and %s is outside", path)
	}
	inside, err := regular.Inside(dir, 0)
	if err == nil {
		_, err = fs.Stat(inside, filepath.ToSlash(rest))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// short returns a path relative to the working directory if it is below it.
func (h Host) short(path string) string {
	if rest, ok := strings.CutPrefix(path, h.Dir+string(filepath.Separator)); ok {
		return rest
	}
	return path
}

// paths lists the configuration files, nearest first.
func (h Host) paths() ([]string, error) {
	if path, ok := h.Lookup(Override); ok {
		if path == "" {
			return nil, nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(h.Dir, path)
		}
		return []string{path}, nil
	}
	var paths []string
	near, err := h.nearest()
	if near != "" {
		paths = append(paths, near)
	}
	if own := h.own(); own != "" && own != near && exists(own) {
		paths = append(paths, own)
	}
	return paths, err
}

// own returns the path of the user's own file.
func (h Host) own() string {
	if h.User == "" {
		return ""
	}
	return filepath.Join(h.User, "builder", Name)
}

// nearest finds the file in the working directory or its nearest parent.
func (h Host) nearest() (string, error) {
	for dir := h.Dir; dir != ""; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, Name); exists(path) {
			if planted(dir, path) {
				return "", diag.At(diag.Pos{File: path}, "refused: every user can write to %s, and another user owns this file", dir).
					WithHint("name another file with %s=FILE, or use no file with %s=", Override, Override)
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", nil
}

// exists reports whether the path exists. A path that is no file causes an error when
// it is read.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// planted reports whether another user may have placed the file, for example in /tmp
// above the user's working directory.
func planted(dir, path string) bool {
	around, err := os.Stat(dir)
	if err != nil || around.Mode().Perm()&0o002 == 0 {
		return false
	}
	info, err := os.Lstat(path)
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid != 0 && int(stat.Uid) != os.Getuid()
}

// readBounded reads a regular file of at most maxBytes. A file found beside the work
// must not be a link out of its directory: a link in an untrusted checkout could expose
// a key in an error message.
func (h Host) readBounded(path string) ([]byte, error) {
	read := regular.ReadFollowed
	if h.found(path) {
		read = regular.ReadInside
	}
	data, err := read(path, maxBytes)
	pathErr, ok := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("the file does not exist")
	case ok:
		err = pathErr.Err
	}
	return nil, diag.At(diag.Pos{File: path}, "%w", err)
}

// under adds the settings of a farther file. Settings already in c take precedence.
func (c Config) under(path string, far Config) Config {
	c.Files = append(slices.Clone(c.Files), path)
	for _, s := range far.Settings {
		if _, ok := c.Setting(s.Key); !ok {
			c.Settings = append(c.Settings, s)
		}
	}
	return c
}

// Setting returns the setting of a key, and whether a file has it.
func (c Config) Setting(key string) (Setting, bool) {
	i := slices.IndexFunc(c.Settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return c.Settings[i], true
}
