package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// A Config is the content of the configuration file.
type Config struct{ Settings []Setting }

// A Host describes the environment of this process for [Load].
type Host struct {
	Dir    string // absolute working directory, "" if it was deleted
	User   string // the user's configuration directory, or ""
	Home   string // the user's home directory, or ""
	Lookup func(name string) (value string, ok bool)
}

// This returns the host of this process. Unknown directories are "".
func This() Host {
	known := func(dir string, err error) string {
		if err != nil {
			return ""
		}
		return dir
	}
	return Host{Dir: known(os.Getwd()), User: known(os.UserConfigDir()), Home: known(os.UserHomeDir()), Lookup: os.LookupEnv}
}

// Load reads the configuration file of a host, if there is one. It reports all errors of
// the file together. Each has the class [diag.Usage] and a position.
func Load(host Host) (Config, error) {
	path := host.path()
	if path == "" {
		return Config{}, nil
	}
	data, err := readBounded(path)
	if err != nil {
		return Config{}, err
	}
	return read(host.short(path), base{filepath.Dir(path), host}, data)
}

// path returns the file to read, or "". No file is looked for beside the work: a checkout
// must not choose programs, keys, addresses or directories.
func (h Host) path() string {
	path, named := h.Lookup(Override)
	switch {
	case named && (path == "" || filepath.IsAbs(path)):
		return path
	case named:
		return filepath.Join(h.Dir, path)
	case h.User == "":
		return ""
	}
	own := filepath.Join(h.User, "builder", Name)
	if _, err := os.Lstat(own); err != nil {
		return ""
	}
	return own
}

// short returns a path relative to the working directory if it is below it.
func (h Host) short(path string) string {
	if rest, ok := strings.CutPrefix(path, h.Dir+string(filepath.Separator)); ok {
		return rest
	}
	return path
}

// readBounded reads a regular file of at most maxBytes.
func readBounded(path string) ([]byte, error) {
	data, err := regular.ReadFollowed(path, maxBytes)
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

// Setting returns the setting of a key, and whether the file has it.
func (c Config) Setting(key string) (Setting, bool) {
	i := slices.IndexFunc(c.Settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return c.Settings[i], true
}
