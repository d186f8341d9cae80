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

// seenLibrary is a library with everything that clues read from its bytes.
type seenLibrary struct {
	*elf.File
	name    string // path in the wheel
	targets []elf.Target
	at      map[place][]string
}

// A place is a list of names in a library. Its text begins the evidence.
type place string

const (
	needs   place = "needs"   // DT_NEEDED
	wants   place = "wants"   // undefined symbols
	exports place = "exports" // exported symbols
	holds   place = "holds"   // constants that match telling
	code    place = "holds code for"
)

// telling matches the constants used by clues: names passed to dlopen, the version
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
	l := linked(name, file)
	l.targets, l.at[holds] = targets, texts
	for _, t := range targets {
		l.at[code] = append(l.at[code], t.Vendor+" "+t.String())
	}
	return l, err
}

// linked returns a library with its places that the linker made.
func linked(name string, f *elf.File) seenLibrary {
	l := seenLibrary{File: f, name: name, at: map[place][]string{needs: f.Needed}}
	for _, s := range f.Undefined {
		l.at[wants] = append(l.at[wants], s.Name)
	}
	for _, s := range f.Exported {
		l.at[exports] = append(l.at[exports], s.Name)
	}
	return l
}

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

// A feature is one kind of fact about libraries.
type feature struct {
	name   string
	absent string // evidence if no library has a value
}

// floor is the feature of which the highest value counts for the whole file.
const floor = "glibc"

var features = []feature{
	{"framework", "no extension, library or symbol of TensorFlow, PyTorch or MXNet"},
	{"cxxabi", "no framework function with a string argument"},
	{"rocm", "no libamdhip64 and no code for AMD's GPUs"},
	{"cuda", "no libcudart and no code for NVIDIA's GPUs"},
	{"sycl", "no libsycl"},
	{"arch", "no GPU code"},
	{"nccl", "no NCCL, RCCL or oneCCL"},
	{"mpi", "no libmpi"},
	{"gloo", "no Gloo"},
	{"rdma", "no libibverbs"},
	{floor, "no symbol of glibc"},
}

// A clue gives a fact its value if a name in the place matches. The value "" is that of
// the pattern's group.
type clue struct {
	value string
	in    place
	names *regexp.Regexp
	also  func(seenLibrary) bool // nil if nothing else must hold
}

var re = regexp.MustCompile

// clues lists the clues of a fact in sets. A set counts only if those before it found
// nothing, and may find several values.
//
// framework goes by undefined symbols as well as DT_NEEDED: an extension need not link its
// framework, because the interpreter has already loaded it.
//
// cxxabi is the form of std::string in the calls from a library to its framework: cxx11
// (_GLIBCXX_USE_CXX11_ABI=1) or old, as GCC before version 5 mangled it. Strings used only
// inside the library do not count.
//
// rocm is the major version of ROCm: since ROCm 4, the soname of libamdhip64 has the same.
// cuda is the version in the soname of libcudart, without a final .0. All releases of CUDA
// 11 have 11.0, and later ones only the major version. A library with a built-in runtime
// shows only its device code. sycl is the version of Intel's GPU runtime.
//
// mpi is the family by the major version in the soname: 40 is Open MPI 3 and later, 20 is
// Open MPI 2, and 12 is MPICH or an implementation compatible with its ABI.
var clues = map[string][][]clue{
	"framework": {{
		{value: "tensorflow", in: needs, names: re(`^(libtensorflow\w*|_pywrap_tensorflow_internal)\.so`)},
		{value: "tensorflow", in: wants, names: re(`^_ZNK?10tensorflow\d`)},
		{value: "torch", in: needs, names: re(`^lib(torch|torch_cpu|torch_cuda|torch_hip|torch_python|c10)\.so`)},
		{value: "torch", in: wants, names: re(`^_ZNK?(2at|3c10|5torch)\d`)},
		{value: "mxnet", in: needs, names: re(`^libmxnet\.so`)},
		{value: "mxnet", in: wants, names: re(`^MX[A-Z][a-zA-Z]+$`)},
	}},
	"cxxabi": {{
		{value: "cxx11", in: wants, names: re(`^_ZNK?(2at|3c10|5torch|10tensorflow)\d.*7__cxx11`)},
		{value: "old", in: wants, names: re(`^_ZNK?(2at|3c10|5torch|10tensorflow)\d.*[RP]KSs`)},
	}},
	"rocm": {
		{{in: needs, names: re(`^libamdhip64\.so\.(\d+)`)}},
		{{value: Unknown, in: wants, names: re(`^hip(Malloc|Memcpy|StreamSynchronize|LaunchKernel|GetDevice)`)}},
		{{value: Unknown, in: code, names: re(`^amd `)}},
	},
	"cuda": {
		{{in: needs, names: re(`^libcudart\.so\.(\d+(?:\.[1-9]\d*)?)`)}},
		{{value: Unknown, in: wants, names: re(`^cuda(Malloc|Memcpy|StreamSynchronize|LaunchKernel|GetDevice)`)}},
		{{value: Unknown, in: code, names: re(`^nvidia `)}},
	},
	"sycl": {{{in: needs, names: re(`^libsycl\.so\.(\d+)`)}}},
	"nccl": {
		{{in: needs, names: re(`^lib(nccl|rccl)\.so`)}, {value: "oneccl", in: needs, names: re(`^libccl\.so`)}},
		{{value: "rccl", in: exports, names: re(`^p?ncclAllReduce$`), also: isRCCL}},
		{{value: "nccl", in: exports, names: re(`^p?ncclAllReduce$`)}},
		{{value: Unknown, in: wants, names: re(`^p?ncclAllReduce$`)}},
	},
	"mpi": {
		{
			{value: "openmpi", in: needs, names: re(mpiLib + `(20|40)(\.|$)`)},
			{value: "mpich", in: needs, names: re(mpiLib + `12(\.|$)`)},
		},
		{{value: Unknown, in: needs, names: re(mpiLib)}},
		{{value: Unknown, in: wants, names: re(`^MPI_(Init|Init_thread|Allreduce|Comm_rank)$`)}},
	},
	"gloo": {{
		{value: "built-in", in: exports, names: re(`^_Z\w*4gloo\d`)},
		{value: "built-in", in: wants, names: re(`^_Z\w*4gloo\d`)},
		{value: "built-in", in: holds, names: re(`^N?4gloo`)},
	}},
	"rdma": {
		{{value: "linked", in: wants, names: re(`^ibv_`), also: needsVerbs}},
		{{value: Unknown, in: wants, names: re(`^ibv_`)}},
		{{value: "dlopened", in: holds, names: re(`^libibverbs\.so`)}},
	},
}

// words lists the values of a fact that is a word, and nothing for other facts.
func words(name string) []string {
	var values []string
	for _, c := range slices.Concat(clues[name]...) {
		if c.value != "" && c.value != Unknown && !slices.Contains(values, c.value) {
			values = append(values, c.value)
		}
	}
	if len(values) > 0 {
		values = append(values, None)
	}
	return values
}

const mpiLib = `^lib(?:mpi|mpicxx|mpi_cxx|mpifort|mpich)\.so\.?`

func isRCCL(l seenLibrary) bool {
	says := func(text string) bool { return strings.HasPrefix(text, "RCCL version ") }
	return strings.HasPrefix(l.Soname, "librccl") || slices.ContainsFunc(l.at[holds], says)
}

func needsVerbs(l seenLibrary) bool {
	return slices.ContainsFunc(l.Needed, func(soname string) bool { return strings.HasPrefix(soname, "libibverbs.so") })
}

// seen maps each value of a feature to its evidence in the library.
type seen map[string]string

// values returns the values of a feature. A library in the directory of another framework
// counts for neither.
func (l seenLibrary) values(feature string) seen {
	found := seen{}
	switch feature {
	case "arch":
		for _, t := range l.targets {
			found[t.String()] = "holds its code"
		}
		return found
	case floor: // of systems with the required symbols, as in the gate glibc-floor
		if required := linux.Required(l.Floors); len(required) > 0 {
			found[cmp.Or(linux.Oldest(l.Floors), Unknown)] = "requires " + strings.Join(required, ", ")
		}
		return found
	}
	for _, set := range clues[feature] {
		for _, c := range set {
			c.find(l, found)
		}
		if len(found) > 0 {
			break
		}
	}
	if floor := l.Floors["IBVERBS"]; feature == "rdma" && floor != "" && found["linked"] != "" {
		found["linked"] += ", and the node's libibverbs must have IBVERBS_" + floor
	}
	if problem := misplaced(l.name, found); feature == "framework" && problem != "" {
		return seen{Unknown: problem}
	}
	return found
}

// find adds the value of the first name that matches.
func (c clue) find(l seenLibrary, found seen) {
	i := slices.IndexFunc(l.at[c.in], c.names.MatchString)
	if i < 0 || c.also != nil && !c.also(l) {
		return
	}
	name := l.at[c.in][i]
	value, evidence := c.value, string(c.in)+" "+name
	switch {
	case value == "":
		value = c.names.FindStringSubmatch(name)[1]
	case value == Unknown && c.in == wants:
		evidence += " and needs no library with it"
	}
	if found[value] == "" {
		found[value] = evidence
	}
}

// Misplaced describes a library in the directory of one framework with symbols of
// another, and returns "" for other libraries. Python imports such a library for the
// directory's framework, where it does not work.
func Misplaced(name string, f *elf.File) string {
	return misplaced(name, linked("", f).values("framework"))
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
