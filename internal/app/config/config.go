package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// Name is what the file is called.
const Name = "builder.yaml"

// Override is the variable that names the one file to read in the place of all
// others; set to nothing, no file is read.
const Override = "BUILDER_CONFIG"

// maxBytes bounds a file that is read.
const maxBytes = 64 << 10

// A Config is what the files say.
type Config struct {
	Files       []string // those that were read, the nearest first
	Settings    []Setting
	Preferences []Preference
}

// A Host is what [Load] has to know of the place where the tool is called.
type Host struct {
	Dir    string // working directory, absolute, "" where it is gone
	User   string // the user's configuration directory, "" where there is none
	Home   string // the user's home directory, "" where there is none
	Lookup func(name string) (value string, ok bool)
}

// This returns the host and the user of this process. What it lacks holds no file.
func This() Host {
	known := func(dir string, err error) string {
		if err != nil {
			return ""
		}
		return dir
	}
	return Host{Dir: known(os.Getwd()), User: known(os.UserConfigDir()), Home: known(os.UserHomeDir()), Lookup: os.LookupEnv}
}

// Load reads the files that count on a host. Faults are of class [diag.Usage] and
// have a place; all of all files come at once.
func Load(host Host) (Config, error) {
	paths, err := host.paths()
	faults := []error{err}
	var all Config
	for _, path := range paths {
		data, err := host.readBounded(path)
		var one Config
		if err == nil {
			one, err = read(host.short(path), base{filepath.Dir(path), host}, data)
		}
		faults = append(faults, err)
		if host.found(path) {
			faults = append(faults, one.presumes())
		}
		all = all.under(path, one)
	}
	return all, errors.Join(faults...)
}

// found reports whether a file counts because of where it lies, and not because the
// user put it into a place of the user's own or named it.
func (h Host) found(path string) bool {
	_, named := h.Lookup(Override)
	return !named && path != h.own()
}

// personal are the keys that say whom the user trusts, and with what.
var personal = []string{"trust", "key", "engine"}

// presumes refuses what a file must not say that comes with the files around it:
// a checkout of somebody else's would say whose signatures count, what signs, and
// where it is built.
func (c Config) presumes() error {
	var faults []error
	for _, s := range c.Settings {
		if slices.Contains(personal, s.Key) {
			faults = append(faults, diag.At(s.Pos, "%s: a file that is found beside the work does not say whom you trust", s.Key).
				WithHint("say it in builder/builder.yaml of your configuration directory, in %s, or name this file: %s=FILE", Variable(s.Key), Override))
		}
	}
	return errors.Join(faults...)
}

// short names a file without the working directory.
func (h Host) short(path string) string {
	if rest, ok := strings.CutPrefix(path, h.Dir+string(filepath.Separator)); ok {
		return rest
	}
	return path
}

// paths lists the files that count, the nearest first.
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

// own is the place of the user's own file.
func (h Host) own() string {
	if h.User == "" {
		return ""
	}
	return filepath.Join(h.User, "builder", Name)
}

// nearest finds the file in the working directory, or in the nearest one above.
func (h Host) nearest() (string, error) {
	for dir := h.Dir; dir != ""; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, Name); exists(path) {
			if planted(dir, path) {
				return "", diag.At(diag.Pos{File: path}, "everybody can write to %s, and this file is another user's: it is not read", dir).
					WithHint("%s=FILE names another file, %s= reads none", Override, Override)
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", nil
}

// exists reports whether there is anything of that name; what is no file is told
// when it is read.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// planted reports whether a file may have been put in the user's way: into /tmp,
// say, below which he works.
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

// readBounded reads a regular file of at most maxBytes. One that is found beside the
// work lies there itself: a link in somebody else's checkout would have a key shown.
func (h Host) readBounded(path string) ([]byte, error) {
	read := regular.ReadFollowed
	if h.found(path) {
		read = readInside
	}
	data, err := read(path, maxBytes)
	fault, ok := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such file")
	case ok:
		err = fault.Err
	}
	return nil, diag.At(diag.Pos{File: path}, "%w", err)
}

// readInside reads a file that does not lead out of its directory.
func readInside(path string, max int64) ([]byte, error) {
	dir, err := regular.Inside(filepath.Dir(path), max)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(dir, filepath.Base(path))
}

// under adds what a file says that is farther away: what is known counts.
func (c Config) under(path string, far Config) Config {
	c.Files = append(slices.Clone(c.Files), path)
	for _, s := range far.Settings {
		if _, ok := c.Setting(s.Key); !ok {
			c.Settings = append(c.Settings, s)
		}
	}
	for _, p := range far.Preferences {
		same := func(q Preference) bool { return q.Recipe == p.Recipe && q.Axis == p.Axis }
		if !slices.ContainsFunc(c.Preferences, same) {
			c.Preferences = append(c.Preferences, p)
		}
	}
	return c
}

// Setting returns what the files say about a key.
func (c Config) Setting(key string) (Setting, bool) {
	i := slices.IndexFunc(c.Settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return c.Settings[i], true
}
