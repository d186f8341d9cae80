package environment

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
)

// A family is a library to be loaded from a single file in a process.
type family struct {
	name     string
	file     *regexp.Regexp // matches its file names; bundled copies have a digest in their name
	symbols  *regexp.Regexp // matches the symbols exported only by this library
	project  string         // name prefix of its projects
	alone    bool           // two files in one process are an error even with different names
	versions func(*os.File) ([]string, error)
}

var families = []*family{
	{name: "NCCL", file: called("nccl"), symbols: regexp.MustCompile(`^p?nccl[A-Z]`), project: "nvidia-nccl-", alone: true, versions: ncclVersions},
	{name: "RCCL", file: called("rccl"), symbols: regexp.MustCompile(`^p?nccl[A-Z]`), project: "rccl", alone: true, versions: ncclVersions},
	{name: "NVSHMEM", file: called("nvshmem_host"), symbols: regexp.MustCompile(`^nvshmemx?_`), project: "nvidia-nvshmem-", alone: true, versions: nvshmemVersions},
	{name: "libibverbs", file: called("ibverbs"), symbols: regexp.MustCompile(`^ibv_`), project: "rdma-core", alone: true},
	{name: "the CUDA runtime", file: called("cudart"), symbols: regexp.MustCompile(`^(__)?cuda[A-Z]`), project: "nvidia-cuda-runtime"},
	{name: "the HIP runtime", file: called("amdhip64"), symbols: regexp.MustCompile(`^(__)?hip[A-Z]`), project: "rocm-sdk-core", alone: true},
}

func called(stem string) *regexp.Regexp {
	return regexp.MustCompile(`^lib` + stem + `(-[0-9a-f]{6,})?\.so(\.\d+)*$`)
}

// familyOf returns the family of a file name, or nil.
func familyOf(name string) *family {
	i := slices.IndexFunc(families, func(f *family) bool { return f.file.MatchString(filepath.Base(name)) })
	if i < 0 {
		return nil
	}
	return families[i]
}

// ncclVersions returns the versions in the banner of NCCL or RCCL: 2.30.7 for
// "2.30.7+cuda13.3".
func ncclVersions(f *os.File) ([]string, error) {
	all, err := inspect.Versions(f)
	return numbers(all), err
}

var nvshmemBanner = regexp.MustCompile(`^NVSHMEM v\d+\.\d+\.\d+`)

func nvshmemVersions(f *os.File) ([]string, error) {
	all, err := elf.Texts(f, nvshmemBanner)
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], "NVSHMEM v")
	}
	return numbers(all), err
}

var leading = regexp.MustCompile(`^\d+(\.\d+)*`)

// numbers returns the leading version numbers of texts, each once.
func numbers(texts []string) (versions []string) {
	for _, text := range texts {
		if v := leading.FindString(text); v != "" && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	return versions
}

// sameVersion compares the first three numbers, because libraries report no more.
func sameVersion(a, b string) bool {
	cut := func(v string) []string {
		parts := strings.Split(leading.FindString(v), ".")
		for len(parts) > 1 && parts[len(parts)-1] == "0" {
			parts = parts[:len(parts)-1]
		}
		return parts[:min(len(parts), 3)]
	}
	return slices.Equal(cut(a), cut(b))
}

// candidate is a file of a family in the packages.
type candidate struct {
	*family
	path string
}

// candidates lists the files of all families in the packages, each once.
func (e *Environment) candidates() (all []candidate) {
	seen := map[string]bool{}
	for _, f := range families {
		var paths []string
		for name, found := range e.byName {
			if f.file.MatchString(name) {
				paths = append(paths, found...)
			}
		}
		slices.Sort(paths)
		for _, path := range paths {
			if lib := e.loader.open(path); !seen[lib.real] {
				seen[lib.real] = true
				all = append(all, candidate{f, path})
			}
		}
	}
	return all
}

// version returns the version reported by a file of a family, or "" if it reports none
// or several.
func (e *Environment) version(f *family, path string) (string, error) {
	if f.versions == nil {
		return "", nil
	}
	var all []string
	err := e.loader.open(path).with(func(r *os.File) (err error) {
		all, err = f.versions(r)
		return err
	})
	if err != nil || len(all) != 1 {
		return "", err
	}
	return all[0], nil
}

// describe describes a file of a family for evidence: its path, its version and its
// distributions.
func (e *Environment) describe(f *family, path string) string {
	text := e.short(path)
	var says []string
	if v, err := e.version(f, path); err == nil && v != "" {
		says = append(says, v)
	}
	for _, o := range e.owners(path) {
		says = append(says, "of "+o.String())
	}
	if len(says) > 0 {
		text += " (" + strings.Join(says, " ") + ")"
	}
	return text
}

// simulate determines the libraries loaded by each importable module on its own, and
// keeps the processes with a file of a family. It adds a process for each other file of
// a family.
func (e *Environment) simulate() {
	var roots []string
	for name, paths := range e.byName {
		if isModule(name) {
			roots = append(roots, paths...)
		}
	}
	slices.Sort(roots)
	loaded := map[string]bool{}
	for _, path := range roots {
		root := e.loader.open(path)
		if root.err != nil {
			if !errors.Is(root.err, os.ErrNotExist) && e.loadable(path) {
				e.blind = append(e.blind, e.short(path)+": "+root.err.Error())
			}
			continue
		}
		p := e.loader.process(root, e.before(root))
		if !p.meetsFamily() {
			continue
		}
		e.processes = append(e.processes, p)
		for _, lib := range p.all {
			loaded[lib.real] = true
		}
	}
	for _, c := range e.candidates() {
		lib := e.loader.open(c.path)
		switch {
		case lib.err != nil:
			e.blind = append(e.blind, e.short(c.path)+": "+lib.err.Error())
		case !loaded[lib.real]:
			e.processes = append(e.processes, e.loader.process(lib, nil))
		}
	}
}

// frameworks lists the packages with libraries that extensions of other packages use
// without a search path to them. torchvision and Horovod import torch first, so the
// loader finds the libraries already loaded.
var frameworks = []struct {
	library string // name prefix of its libraries
	module  string // module loaded by its import, as a pattern relative to a directory of packages
}{
	{"libtorch", "torch/_C.*.so"},
	{"libc10", "torch/_C.*.so"},
	{"libtensorflow_", "tensorflow/python/_pywrap_tensorflow_*.so"},
}

// before returns the process with the framework extended by a module, or nil. The
// module's import loads the framework first.
func (e *Environment) before(root *library) *process {
	for _, f := range frameworks {
		needs := func(name string) bool { return strings.HasPrefix(name, f.library) }
		dir, _, _ := strings.Cut(f.module, "/")
		if !slices.ContainsFunc(root.links.Needed, needs) || strings.HasPrefix(e.short(root.path), dir+"/") {
			continue
		}
		for _, site := range e.Site {
			modules, _ := filepath.Glob(filepath.Join(quoted(site), f.module)) // the pattern is valid
			for _, path := range modules {
				if module := e.loader.open(path); module.err == nil {
					return e.loader.process(module, nil)
				}
			}
		}
	}
	return nil
}

// loadable reports whether a file is a library for a CPU. Wheels also hold GPU code and
// linker scripts.
func (e *Environment) loadable(path string) bool {
	var h elf.Header
	var ok bool
	err := e.loader.open(path).with(func(f *os.File) error {
		h, ok = elf.ReadHeader(f)
		return nil
	})
	return err == nil && ok && (h.Machine == "x86_64" || h.Machine == "aarch64")
}

// isModule reports whether a file of that name is an importable module.
func isModule(name string) bool {
	return strings.HasSuffix(name, ".so") && (!strings.HasPrefix(name, "lib") || strings.Contains(name, ".cpython-") || strings.HasSuffix(name, ".abi3.so"))
}

// meetsFamily reports whether a process loads, or fails to find, a file of a family.
func (p *process) meetsFamily() bool {
	return slices.ContainsFunc(p.all, func(lib *library) bool { return familyOf(lib.path) != nil }) ||
		slices.ContainsFunc(p.missing, func(m missing) bool { return familyOf(m.name) != nil })
}

// imported reports whether the process starts with an importable module.
func (p *process) imported() bool { return isModule(filepath.Base(p.root.path)) }

// bringers maps the libraries in wheels for CUDA or ROCm to the name prefixes of their
// projects. Only those wheels bring such a library, so a name without a file means a
// missing wheel.
var bringers = map[string]string{
	"nccl": "nvidia-nccl-", "nvshmem_host": "nvidia-nvshmem-", "cudart": "nvidia-cuda-runtime", "nvrtc": "nvidia-cuda-nvrtc",
	"cupti": "nvidia-cuda-cupti", "cufile": "nvidia-cufile", "cublas": "nvidia-cublas", "cublasLt": "nvidia-cublas", "cudnn": "nvidia-cudnn-",
	"cufft": "nvidia-cufft", "curand": "nvidia-curand", "cusolver": "nvidia-cusolver", "cusparse": "nvidia-cusparse",
	"cusparseLt": "nvidia-cusparselt-", "nvJitLink": "nvidia-nvjitlink", "rccl": "rccl", "amdhip64": "rocm-sdk-core", "hiprtc": "rocm-sdk-core",
}

var libraryName = regexp.MustCompile(`^lib([A-Za-z][\w]*?)(?:-[0-9a-f]{6,})?\.so((?:\.\d+)*)$`)

// bringer returns the stem of a library's name and the name prefix of its projects, or
// "" if no wheel brings it.
func bringer(name string) (stem, project string) {
	m := libraryName.FindStringSubmatch(name)
	if m == nil {
		return "", ""
	}
	return m[1], bringers[m[1]]
}

// without maps a library to an optional library opened by name. Without NCCL, NVSHMEM
// prints a message and uses its own collectives.
var without = map[string]string{"nvshmem_host": "nccl"}

// ofDriver matches libraries of the GPU driver, which no package can bring.
var ofDriver = regexp.MustCompile(`^lib(cuda|nvidia-[\w-]+|nvcuvid|nvoptix)\.so(\.|$)`)

// ofROCm matches libraries of ROCm, as the diagnosis rocm-library-missing does.
var ofROCm = regexp.MustCompile(`^lib(amdhip64|hsa-runtime64|rccl|MIOpen|hip\w+|roc\w+|amd_comgr)\.so`)

// hostsOwn matches the libraries of the host that NCCL, NVSHMEM and torch open by name:
// those of the drivers for GPUs and for networks.
var hostsOwn = regexp.MustCompile(`^lib(cuda|nvidia-[\w-]+|nvcuvid|nvoptix|ibverbs|mlx[45]|efa|rdmacm|gdrapi|fabric|rocm_smi64)\.so\.\d`)

// matters reports whether a file is code not to be shared by two distributions.
func matters(path string) bool {
	return wheel.IsLibrary(path) || slices.Contains([]string{".a", ".bc", ".kpack", ".hsaco", ".co", ".fatbin", ".cubin"}, filepath.Ext(path))
}
