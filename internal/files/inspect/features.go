package inspect

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/linux"
)

// seenLibrary is a library with everything the features read from its bytes.
type seenLibrary struct {
	*elf.File
	name    string // path in the wheel
	targets []elf.Target
	texts   []string // constants used by some feature
}

// telling matches the constants used by features: names passed to dlopen, the version
// strings of NCCL and RCCL, and the types of Gloo.
var telling = regexp.MustCompile(`^libibverbs\.so|^(NCCL|RCCL) version \d|^N?4gloo`)

func look(name string, r io.ReaderAt) (seenLibrary, error) {
	file, err := elf.Read(r)
	if err != nil {
		return seenLibrary{}, err
	}
	targets, err := elf.DeviceTargets(r)
	if err != nil {
		return seenLibrary{}, err
	}
	texts, err := elf.Texts(r, telling)
	return seenLibrary{file, name, targets, texts}, err
}

// needs returns the first matching soname in DT_NEEDED, and the groups of the match.
func (l seenLibrary) needs(pattern *regexp.Regexp) (soname string, groups []string) {
	for _, n := range l.Needed {
		if m := pattern.FindStringSubmatch(n); m != nil {
			return n, m[1:]
		}
	}
	return "", nil
}

// wants returns the first matching undefined symbol.
func (l seenLibrary) wants(pattern *regexp.Regexp) string { return named(l.Undefined, pattern) }

// gives returns the first matching exported symbol.
func (l seenLibrary) gives(pattern *regexp.Regexp) string { return named(l.Exported, pattern) }

func named(symbols []elf.Symbol, pattern *regexp.Regexp) string {
	for _, s := range symbols {
		if pattern.MatchString(s.Name) {
			return s.Name
		}
	}
	return ""
}

func (l seenLibrary) text(prefix string) string {
	for _, t := range l.texts {
		if strings.HasPrefix(t, prefix) {
			return t
		}
	}
	return ""
}

// versions returns the versions found in the library's NCCL or RCCL version strings.
func (l seenLibrary) versions() []string { return versionsIn(l.texts) }

// Versions returns the versions found in the NCCL or RCCL version strings of a library.
// Most libraries have one, some have several.
func Versions(r io.ReaderAt) ([]string, error) {
	texts, err := elf.Texts(r, telling)
	return versionsIn(texts), err
}

func versionsIn(texts []string) (all []string) {
	for _, t := range texts {
		for _, prefix := range []string{"NCCL version ", "RCCL version "} {
			if v, ok := strings.CutPrefix(t, prefix); ok && !strings.Contains(v, "%") {
				all = append(all, v)
			}
		}
	}
	return all
}

// seen maps each value of a feature to its evidence in the library.
type seen map[string]string

// A feature is one kind of fact about libraries.
type feature struct {
	name   string
	absent string // evidence if no library has a value
	floor  bool   // the highest value counts for the whole file
	in     func(seenLibrary) seen
}

var features = []feature{
	{name: "framework", absent: "no extension, library or symbol of TensorFlow, PyTorch or MXNet", in: frameworks},
	{name: "cxxabi", absent: "no framework function with a string argument", in: cxxABI},
	{name: "rocm", absent: "no libamdhip64 and no code for AMD's GPUs", in: rocm},
	{name: "cuda", absent: "no libcudart and no code for NVIDIA's GPUs", in: cuda},
	{name: "sycl", absent: "no libsycl", in: sycl},
	{name: "arch", absent: "no GPU code", in: archs},
	{name: "nccl", absent: "no NCCL, RCCL or oneCCL", in: nccl},
	{name: "mpi", absent: "no libmpi", in: mpi},
	{name: "gloo", absent: "no Gloo", in: gloo},
	{name: "rdma", absent: "no libibverbs", in: rdma},
	{name: "glibc", absent: "no symbol of glibc", floor: true, in: glibc},
}

var (
	torchLib    = regexp.MustCompile(`^lib(torch|torch_cpu|torch_cuda|torch_hip|torch_python|c10)\.so`)
	torchSymbol = regexp.MustCompile(`^_ZNK?(2at|3c10|5torch)\d`)
	tfLib       = regexp.MustCompile(`^(libtensorflow\w*|_pywrap_tensorflow_internal)\.so`)
	tfSymbol    = regexp.MustCompile(`^_ZNK?10tensorflow\d`)
	mxLib       = regexp.MustCompile(`^libmxnet\.so`)
	mxSymbol    = regexp.MustCompile(`^MX[A-Z][a-zA-Z]+$`)
)

// frameworks goes by a library's undefined symbols as well as DT_NEEDED: an extension
// need not link its framework, because the interpreter has already loaded it. A library
// in the directory of another framework counts for neither.
func frameworks(l seenLibrary) seen {
	found := wantedFrameworks(l)
	if problem := misplaced(l.name, found); problem != "" {
		return seen{Unknown: problem}
	}
	return found
}

// Misplaced describes a library in the directory of one framework with symbols of
// another, and returns "" for other libraries. Python imports such a library for the
// directory's framework, where it does not work.
func Misplaced(name string, f *elf.File) string {
	return misplaced(name, wantedFrameworks(seenLibrary{File: f}))
}

func misplaced(name string, wanted seen) string {
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		if len(wanted) > 0 && wanted[dir] == "" && slices.Contains([]string{"tensorflow", "torch", "mxnet"}, dir) {
			other := slices.Sorted(maps.Keys(wanted))[0]
			return fmt.Sprintf("is in the directory of %s, but for %s: it %s", dir, other, wanted[other])
		}
	}
	return ""
}

func wantedFrameworks(l seenLibrary) seen {
	found := seen{}
	for _, f := range []struct {
		name        string
		lib, symbol *regexp.Regexp
	}{{"tensorflow", tfLib, tfSymbol}, {"torch", torchLib, torchSymbol}, {"mxnet", mxLib, mxSymbol}} {
		if n, _ := l.needs(f.lib); n != "" {
			found[f.name] = "needs " + n
		} else if s := l.wants(f.symbol); s != "" {
			found[f.name] = "wants " + s
		}
	}
	return found
}

var oldString = regexp.MustCompile(`[RP]KSs`) // std::string as GCC before version 5 mangled it

// cxxABI is the form of std::string in the calls from a library to its framework: cxx11
// (_GLIBCXX_USE_CXX11_ABI=1) or old. Strings used only inside the library do not count.
func cxxABI(l seenLibrary) seen {
	found := seen{}
	for _, s := range l.Undefined {
		switch {
		case !torchSymbol.MatchString(s.Name) && !tfSymbol.MatchString(s.Name):
		case strings.Contains(s.Name, "7__cxx11"):
			found["cxx11"] = "wants " + s.Name
		case oldString.MatchString(s.Name):
			found["old"] = "wants " + s.Name
		}
	}
	return found
}

var (
	hipLib     = regexp.MustCompile(`^libamdhip64\.so\.(\d+)`)
	hipSymbol  = regexp.MustCompile(`^hip(Malloc|Memcpy|StreamSynchronize|LaunchKernel|GetDevice)`)
	cudaLib    = regexp.MustCompile(`^libcudart\.so\.(\d+(?:\.\d+)?)`)
	cudaSymbol = regexp.MustCompile(`^cuda(Malloc|Memcpy|StreamSynchronize|LaunchKernel|GetDevice)`)
)

// rocm is the major version of ROCm. Since ROCm 4, the soname of libamdhip64 has the
// same major version.
func rocm(l seenLibrary) seen { return runtime(l, hipLib, hipSymbol, "amd") }

// cuda is the version in the soname of libcudart, without a final .0. All releases of
// CUDA 11 have 11.0, and later ones only the major version. A library with a built-in
// runtime shows only its device code.
func cuda(l seenLibrary) seen { return runtime(l, cudaLib, cudaSymbol, "nvidia") }

func runtime(l seenLibrary, lib, symbol *regexp.Regexp, vendor string) seen {
	if n, groups := l.needs(lib); n != "" {
		return seen{strings.TrimSuffix(groups[0], ".0"): "needs " + n}
	}
	if s := l.wants(symbol); s != "" {
		return seen{Unknown: "requires " + s + " and needs no library with it"}
	}
	for _, t := range l.targets {
		if t.Vendor == vendor {
			return seen{Unknown: "holds code for " + t.String() + " and the runtime itself"}
		}
	}
	return nil
}

func archs(l seenLibrary) seen {
	found := seen{}
	for _, t := range l.targets {
		found[t.String()] = "holds its code"
	}
	return found
}

var syclLib = regexp.MustCompile(`^libsycl\.so\.(\d+)`)

// sycl is the version of Intel's GPU runtime in the soname of libsycl.
func sycl(l seenLibrary) seen {
	if n, groups := l.needs(syclLib); n != "" {
		return seen{groups[0]: "needs " + n}
	}
	return nil
}

var (
	ncclLib    = regexp.MustCompile(`^lib(nccl|rccl|ccl)\.so`)
	ncclSymbol = regexp.MustCompile(`^p?ncclAllReduce$`)
)

func nccl(l seenLibrary) seen {
	if n, groups := l.needs(ncclLib); n != "" {
		kind := map[string]string{"nccl": "nccl", "rccl": "rccl", "ccl": "oneccl"}[groups[0]]
		return seen{kind: "needs " + n}
	}
	if s := l.gives(ncclSymbol); s != "" {
		kind := "nccl"
		if strings.HasPrefix(l.Soname, "librccl") || l.text("RCCL version ") != "" {
			kind = "rccl"
		}
		return seen{kind: "is the library: exports " + s}
	}
	if s := l.wants(ncclSymbol); s != "" {
		return seen{Unknown: "requires " + s + " and needs no library with it"}
	}
	return nil
}

var (
	mpiLib    = regexp.MustCompile(`^lib(?:mpi|mpicxx|mpi_cxx|mpifort|mpich)\.so\.?(\d*)`)
	mpiSymbol = regexp.MustCompile(`^MPI_(Init|Init_thread|Allreduce|Comm_rank)$`)
)

// mpi recognizes the MPI family by the major version in the soname: 40 is Open MPI 3
// and later, 20 is Open MPI 2, and 12 is MPICH or an implementation compatible with its
// ABI.
func mpi(l seenLibrary) seen {
	n, groups := l.needs(mpiLib)
	switch {
	case n == "" && l.wants(mpiSymbol) != "":
		return seen{Unknown: "requires " + l.wants(mpiSymbol) + " and needs no library with it"}
	case n == "":
		return nil
	case groups[0] == "40" || groups[0] == "20":
		return seen{"openmpi": "needs " + n}
	case groups[0] == "12":
		return seen{"mpich": "needs " + n}
	}
	return seen{Unknown: "needs " + n}
}

var glooSymbol = regexp.MustCompile(`^_Z\w*4gloo\d`)

func gloo(l seenLibrary) seen {
	for _, s := range []string{l.gives(glooSymbol), l.wants(glooSymbol), l.text("N4gloo"), l.text("4gloo")} {
		if s != "" {
			return seen{"built-in": "holds " + s}
		}
	}
	return nil
}

var (
	verbsLib    = regexp.MustCompile(`^libibverbs\.so`)
	verbsSymbol = regexp.MustCompile(`^ibv_`)
)

func rdma(l seenLibrary) seen {
	n, _ := l.needs(verbsLib)
	symbol := l.wants(verbsSymbol)
	switch {
	case n != "" && symbol != "":
		return seen{"linked": "needs " + n}
	case symbol != "":
		return seen{Unknown: "requires " + symbol + " and needs no library with it"}
	case l.text("libibverbs.so") != "":
		return seen{"dlopened": "holds the name " + l.text("libibverbs.so")}
	}
	return nil
}

// glibc is the oldest glibc of systems with the required symbols of glibc, libstdc++ and
// libgcc, as in the gate glibc-floor.
func glibc(l seenLibrary) seen {
	required := linux.Required(l.Floors)
	if len(required) == 0 {
		return nil
	}
	return seen{cmp.Or(linux.Oldest(l.Floors), Unknown): "requires " + strings.Join(required, ", ")}
}
