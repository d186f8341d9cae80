package environment

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/regular"
	"builder/internal/files/elf"
)

// loader simulates the dynamic linker of Linux: it finds the file for a name, given the
// library that needs it.
type loader struct {
	ctx   context.Context
	host  Host
	main  *library // the interpreter; its DT_RPATH applies to all libraries; may be nil
	known map[string]*library
}

// library is a library file, read once.
type library struct {
	path, real string
	links      *elf.File
	full       *elf.File // with symbols; nil until requested
	err        error
}

func newLoader(ctx context.Context, host Host, python string) *loader {
	l := &loader{ctx: ctx, host: host, known: map[string]*library{}}
	if python != "" {
		if real, err := filepath.EvalSymlinks(python); err == nil {
			if main := l.open(real); main.err == nil {
				l.main = main
			}
		}
	}
	return l
}

// open reads the dynamic section of a library, once.
func (l *loader) open(path string) *library {
	if lib, ok := l.known[path]; ok {
		return lib
	}
	lib := &library{path: path, real: path}
	l.known[path] = lib
	if real, err := filepath.EvalSymlinks(path); err == nil {
		lib.real = real
	}
	lib.err = lib.with(func(r *os.File) (err error) {
		lib.links, err = elf.ReadLinks(elf.Bounded(l.ctx, r))
		return err
	})
	return lib
}

// with opens the file for the duration of a call.
func (lib *library) with(ask func(*os.File) error) error {
	f, err := regular.Follow(lib.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return ask(f)
}

// symbols reads a library with its symbols, once.
func (l *loader) symbols(lib *library) (*elf.File, error) {
	if lib.full != nil {
		return lib.full, nil
	}
	err := lib.with(func(f *os.File) (err error) {
		lib.full, err = elf.Read(elf.Bounded(l.ctx, f))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lib.path, err)
	}
	return lib.full, nil
}

// process is the set of libraries loaded for one imported library, on its own or after
// the framework it extends.
type process struct {
	root    *library
	all     []*library          // in the order of loading
	by      map[string]*library // by each of their names
	parent  map[*library]*library
	missing []missing
}

// missing is a needed name without a file.
type missing struct {
	name string
	by   *library
}

// maxLoaded bounds the libraries of one process.
const maxLoaded = 4096

// process loads a library and all its dependencies. before is an already loaded process
// and may be nil.
func (l *loader) process(root *library, before *process) *process {
	p := &process{root: root, by: map[string]*library{}, parent: map[*library]*library{}}
	if before != nil {
		p.all, p.by, p.parent = slices.Clone(before.all), maps.Clone(before.by), maps.Clone(before.parent)
	}
	first := len(p.all)
	p.add(root, nil, filepath.Base(root.path))
	for i := first; i < len(p.all) && i < maxLoaded; i++ {
		from := p.all[i]
		for _, name := range from.links.Needed {
			if p.by[name] != nil {
				continue
			}
			found := l.find(p, from, name)
			if found == nil {
				if !slices.ContainsFunc(p.missing, func(m missing) bool { return m.name == name }) {
					p.missing = append(p.missing, missing{name, from})
				}
				continue
			}
			p.add(found, from, name)
		}
	}
	return p
}

// add adds a library unless it is loaded under another name.
func (p *process) add(lib, parent *library, name string) {
	for _, have := range p.all {
		if have.real == lib.real {
			p.by[name] = have
			return
		}
	}
	p.all, p.parent[lib], p.by[name] = append(p.all, lib), parent, lib
	if soname := lib.links.Soname; soname != "" && p.by[soname] == nil {
		p.by[soname] = lib
	}
}

// find returns the file that the loader opens for a name, or nil. It skips files for
// another processor.
func (l *loader) find(p *process, from *library, name string) *library {
	if strings.Contains(name, "/") {
		return l.fit(name, from)
	}
	for _, dir := range l.directories(p, from) {
		if found := l.fit(filepath.Join(dir, name), from); found != nil {
			return found
		}
	}
	return nil
}

func (l *loader) fit(path string, from *library) *library {
	if _, known := l.known[path]; !known && !isFile(path) {
		return nil
	}
	lib := l.open(path)
	if lib.err != nil || lib.links.Machine != from.links.Machine {
		return nil
	}
	return lib
}

// directories lists the search path of the loader in order: DT_RPATH of the library and
// of its parents, unless the library has DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the
// system's directories.
func (l *loader) directories(p *process, from *library) (dirs []string) {
	if len(from.links.Runpath) == 0 {
		for lib := from; lib != nil; lib = p.parent[lib] {
			if len(lib.links.Runpath) == 0 {
				dirs = append(dirs, expanded(lib.links.Rpath, lib)...)
			}
		}
		if l.main != nil && len(l.main.links.Runpath) == 0 {
			dirs = append(dirs, expanded(l.main.links.Rpath, l.main)...)
		}
	}
	dirs = append(dirs, l.host.LibraryPath...)
	dirs = append(dirs, expanded(from.links.Runpath, from)...)
	return append(dirs, l.host.Directories...)
}

// expanded replaces $ORIGIN and $LIB in a search path.
func expanded(paths []string, lib *library) (dirs []string) {
	origin := filepath.Dir(lib.path)
	for _, path := range paths {
		path = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin, "${LIB}", "lib", "$LIB", "lib").Replace(path)
		if filepath.IsAbs(path) {
			dirs = append(dirs, filepath.Clean(path))
		}
	}
	return dirs
}

// ThisHost returns the library directories of this host, with the LD_LIBRARY_PATH of
// this process.
func ThisHost() Host {
	h := Host{LibraryPath: strings.FieldsFunc(os.Getenv("LD_LIBRARY_PATH"), func(r rune) bool { return r == ':' || r == ';' })}
	h.Directories = configured("/etc/ld.so.conf", 0)
	for _, dir := range []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		if isDir(dir) {
			h.Directories = append(h.Directories, dir)
		}
	}
	return h
}

// configured reads the directories of ld.so.conf and of its included files.
func configured(path string, depth int) (dirs []string) {
	text, err := regular.ReadFollowed(path, 1<<20)
	if err != nil || depth > 8 {
		return nil // without the file only the default directories apply
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if pattern, ok := strings.CutPrefix(strings.TrimSpace(line), "include "); ok {
			pattern = strings.TrimSpace(pattern)
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(path), pattern)
			}
			files, _ := filepath.Glob(pattern)
			for _, file := range files {
				dirs = append(dirs, configured(file, depth+1)...)
			}
			continue
		}
		if dir := strings.TrimSpace(line); filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}
