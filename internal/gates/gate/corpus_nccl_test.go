package gate

import (
	"slices"
	"strings"

	"builder/test/kit/elftest"
)

// badNCCL lists libraries claiming to be NCCL.
func badNCCL() []bad {
	named := func(platform string) func(*specimen) {
		return func(s *specimen) { s.wheel.Name = strings.Replace(s.wheel.Name, "manylinux_2_38_x86_64", platform, 1) }
	}
	floor := func(what, platform, says string) bad {
		return bad{what: what, of: ncclVerbs, change: named(platform), gate: "glibc-floor", says: says, do: "promise the newer glibc"}
	}
	loads := func(what, output string, exit int, says, do string) bad {
		return refused(what, ncclVerbs, func(s *specimen) { s.box.answers["nccl-load"] = Result{Exit: exit, Output: output} },
			"nccl-load", says, do)
	}
	const order, missing, release = "-libverbs comes after the objects", "missing or too old in the run-time image", "another release than the cell's"
	musl := floor("a tag that promises musl", "musllinux_1_2_x86_64", "the tag py3-none-musllinux_1_2_x86_64 promises musl")
	musl.also = "wheel-format"
	return []bad{
		refused("libibverbs dropped by --as-needed", ncclVerbs, func(s *specimen) { s.library().Needed = s.library().Needed[1:] },
			"rdma", "expected libibverbs linked, it is used but not linked", order, "elf-needed elf-symbols"),
		refused("libibverbs linked but unused", ncclVerbs, func(s *specimen) { s.drop("", "ibv_") },
			"rdma", "expected libibverbs linked, it is linked but unused", order),
		refused("libibverbs linked in place of opened at run time", ncclDlopen, func(s *specimen) {
			linked := ncclVerbs()
			s.libraries[s.extension], s.box.libraries = linked.library(), linked.box.libraries
		}, "rdma", "expected libibverbs dlopened, it is linked", order, "elf-needed"),
		refused("libibverbs opened at run time in place of linked", ncclVerbs,
			func(s *specimen) { s.libraries[s.extension] = ncclDlopen().library() },
			"rdma", "expected libibverbs linked, it is dlopened", order, "elf-needed"),
		refused("no way to libibverbs at all", ncclDlopen, func(s *specimen) { s.library().Texts = s.library().Texts[:3] },
			"rdma", "expected libibverbs dlopened, it is absent", order),
		refused("a function of a libibverbs newer than in any distribution", ncclVerbs, func(s *specimen) {
			s.library().Undefined = append(s.library().Undefined, elftest.From("libibverbs.so.1", "IBVERBS_1.16", "ibv_query_port_speed")...)
		}, "elf-symbols", "ibv_query_port_speed@IBVERBS_1.16", "the run-time image has an older one"),
		refused("a tag that promises an older glibc, on a wheel without a promise of one", ncclVerbs, func(s *specimen) {
			named("manylinux1_x86_64")(s)
			s.expect.Glibc = ""
		}, "wheel-format", "requires GLIBC_2.38, and the tag py3-none-manylinux1_x86_64 promises glibc 2.5", "auditwheel repair"),
		floor("a tag that promises an older glibc", "manylinux_2_17_x86_64", "requires GLIBC_2.38, and the tag py3-none-manylinux_2_17_x86_64 promises glibc 2.17"),
		floor("a tag that promises an older glibc by its old name", "manylinux2014_x86_64", "requires GLIBC_2.38, and the tag py3-none-manylinux2014_x86_64 promises glibc 2.17"),
		floor("two tags, one of which promises an older glibc", "manylinux_2_38_x86_64.manylinux2010_x86_64", "the tag py3-none-manylinux2010_x86_64 promises glibc 2.12"),
		musl,
		refused("a glibc newer than the recipe promises", ncclVerbs, func(s *specimen) {
			named("manylinux_2_39_x86_64")(s)
			s.library().Undefined = append(s.library().Undefined, elftest.From("libc.so.6", "GLIBC_2.39", "pidfd_spawnp")...)
			s.box.installs(s.library(), nil)
		},
			"glibc-floor", "requires GLIBC_2.39, expected at most the symbols of systems with glibc 2.38", "build on an older distribution"),
		refused("a library compiled with g++ 14, for a system with g++ 12", ncclVerbs, func(s *specimen) {
			s.library().Needed = append(s.library().Needed, "libstdc++.so.6")
			s.library().Undefined = append(s.library().Undefined, elftest.From("libstdc++.so.6", "CXXABI_1.3.15", "__cxa_call_terminate")...)
			s.box.installs(s.library(), nil)
		}, "glibc-floor", "requires CXXABI_1.3.15, expected at most the symbols of systems with glibc 2.38", "with an older g++"),
		refused("packed relocations, which an older glibc does not apply", ncclVerbs, func(s *specimen) {
			s.expect.Glibc = "2.35"
			s.library().Undefined = append(ibverbs(), elftest.From("libc.so.6", "GLIBC_ABI_DT_RELR", "dlopen")...)
			named("manylinux_2_35_x86_64")(s)
			s.box.installs(s.library(), nil)
		}, "glibc-floor", "requires GLIBC_2.36, expected at most the symbols of systems with glibc 2.35", "build on an older distribution"),
		refused("a library without a version of glibc", ncclVerbs, func(s *specimen) {
			s.library().Undefined = append(ibverbs(), elftest.Named("malloc")...)
			s.library().Needed = slices.DeleteFunc(s.library().Needed, func(name string) bool { return name == "libc.so.6" })
			s.box.installs(s.library(), nil)
		}, "glibc-floor", "not libc.so.6, but malloc: it may be a library for another C library", "not-measured never counts as a pass",
			"elf-symbols").unmeasured(),
		refused("a tag for every machine", ncclVerbs, named("any"),
			"wheel-format", "is for x86_64, and the tag is py3-none-any", "build it again"),
		refused("one missing function of the vendor's library", ncclVerbs, func(s *specimen) {
			s.library().Exported = slices.DeleteFunc(s.library().Exported, func(e elftest.Symbol) bool { return e.Name == "pncclCommSplit" })
		}, "nccl-abi", "functions of the vendor's 2.29.7 are missing: pncclCommSplit", "cannot replace the vendor's"),
		refused("a function of a later release in place of one of this", ncclVerbs, func(s *specimen) {
			l := s.library()
			l.Exported[slices.IndexFunc(l.Exported, func(e elftest.Symbol) bool { return e.Name == "ncclSignal" })].Name = "ncclParamGet"
		},
			"nccl-abi", "1 of the 137 functions of the vendor's 2.29.7 are missing: ncclSignal", "programs with calls to the function fail at load"),
		refused("the functions of an older release", ncclVerbs,
			func(s *specimen) { s.library().Exported = elftest.Named(functionsOf(ncclExports, "2.27.7")...) },
			"nccl-abi", "ncclAlltoAll", "cannot replace the vendor's"),
		refused("a release older than all measured ones", ncclVerbs, func(s *specimen) {
			s.expect.LibrarySays, s.library().Texts = "2.16.5+cuda13.0", []string{"NCCL version 2.16.5+cuda13.0"}
			s.replace("nccl-load", "22907", "21605")
		}, "nccl-abi", "the table has no vendor library as old as 2.16.5", "not-measured never counts as a pass").unmeasured(),
		refused("flags inside NVCC=: the library says `compiled with CUDA .`", ncclVerbs,
			func(s *specimen) { s.library().Texts = []string{"NCCL version 2.29.7+cuda."} },
			"nccl-load", `its version string is ["2.29.7+cuda."], expected "2.29.7+cuda13.0"`, "put the flags into NVCC_PREPEND_FLAGS"),
		refused("NCCL compiled with another CUDA", ncclVerbs,
			func(s *specimen) { s.library().Texts = []string{"NCCL version 2.29.7+cuda12.4"} },
			"nccl-load", `its version string is ["2.29.7+cuda12.4"]`, "NVCC"),
		refused("NCCL of another release", ncclVerbs, func(s *specimen) {
			s.library().Texts = []string{"NCCL version 2.29.3+cuda13.0"}
			s.replace("nccl-load", "22907", "22903")
		}, "nccl-load", "ncclGetVersion returns 22903, which is 2.29.3, with status 0; expected 2.29.7", release),
		loads("NCCL with a number of another release than its text", `{"code": 0, "version": 22304, "error": "invalid argument"}`, 0, "ncclGetVersion returns 22304, which is 2.23.4", release),
		loads("NCCL that fails to report its version", `{"code": 3, "version": 22907, "error": "invalid argument"}`, 0, "with status 3", "NVCC_PREPEND_FLAGS"),
		loads("NCCL without a text for its errors", `{"code": 0, "version": 22907, "error": ""}`, 0, "ncclGetErrorString returns nothing", "NVCC_PREPEND_FLAGS"),
		loads("NCCL that crashes at its load", "Segmentation fault (core dumped)\n", 139, "cannot be loaded: exit 139", missing),
		loads("NCCL that ends the program at its load", "", 0, "cannot be loaded: exit 0 with 0 reports: no output", missing),
		refused("RCCL of another release", rccl, func(s *specimen) {
			s.library().Texts[0] = "RCCL version : 2.20.5"
			s.replace("nccl-load", "22203", "22005")
		}, "nccl-load", `its version string is ["2.20.5"], expected "2.22.3"; ncclGetVersion returns 22005`, release),
		refused("RCCL that names the HIP of its build, as before 2.22.3", rccl,
			func(s *specimen) { s.library().Texts[0] = "RCCL version 2.22.3+hip6.4" },
			"nccl-load", `its version string is ["2.22.3+hip6.4"], expected "2.22.3"`, "NVCC"),
		refused("RCCL that opens a name of development packages", rccl, func(s *specimen) {
			s.library().Texts = append(s.library().Texts, "libhsa-runtime64.so")
		}, "elf-needed", "opens libhsa-runtime64.so, a name that only development packages have", "libraries or paths"),
		refused("RCCL without a function of AMD's library", rccl, func(s *specimen) {
			s.library().Exported = slices.DeleteFunc(s.library().Exported, func(e elftest.Symbol) bool { return e.Name == "mscclLoadAlgo" })
		}, "nccl-abi", "1 of the 38 functions of the vendor's 2.20.5 are missing: mscclLoadAlgo", "cannot replace the vendor's"),
		refused("NCCL under the name of RCCL", rccl,
			func(s *specimen) { s.library().Exported = elftest.Named(functionsOf(ncclExports, "2.22.3")...) },
			"nccl-abi", "ncclAllToAllv ncclGather ncclScatter", "cannot replace the vendor's"),
		refused("RCCL linked with Debian's librocm_smi64, which has another name in AMD's ROCm", rccl, func(s *specimen) {
			s.library().Needed = append(s.library().Needed, "librocm_smi64.so.1")
			s.library().Undefined = append(s.library().Undefined, elftest.Named("rsmi_init")...)
			s.box.installs(s.library(), map[string]string{"rsmi_": "librocm_smi64.so.1"})
		}, "elf-needed", "needs librocm_smi64.so*, which is forbidden", "read the link lines"),
		refused("RCCL without a way to libibverbs", rccl, func(s *specimen) { s.library().Texts = s.library().Texts[:3] },
			"rdma", "expected libibverbs dlopened, it is absent", order),
		loads("NCCL without a needed library at run time", "OSError: libibverbs.so.1: cannot open shared object file: No such file or directory\n", 1, "exit 1 with 0 reports: OSError: libibverbs.so.1: cannot open shared object file", missing),
	}
}

// badArchives lists bad archives beside a good wheel.
func badArchives() []bad {
	row := func(what, says string, change func(*archived)) bad {
		return bad{what: what, of: ncclVerbs, change: func(s *specimen) { change(&s.archive) }, gate: "archive", says: says, do: "pack the library checked by the gates"}
	}
	entry := func(what, says, name string, change func(*member)) bad {
		b := row(what, says, nil)
		b.change = func(s *specimen) {
			s.archive.entries = layout(string(s.library().Bytes()))
			change(&s.archive.entries[slices.IndexFunc(s.archive.entries, func(m member) bool { return m.Name == name })])
		}
		return b
	}
	more := func(what, says string, m member) bad {
		b := row(what, says, nil)
		b.change = func(s *specimen) { s.archive.entries = append(layout(string(s.library().Bytes())), m) }
		return b
	}
	cut := func(what, says string, keep func(size int) int) bad {
		return row(what, says, func(a *archived) { a.damage = func(b []byte) []byte { return b[:keep(len(b))] } })
	}
	const library = "nccl/lib/libnccl.so.2.29.7"
	many := row("an archive with more entries than the limit", "more than the limit of 10000 entries", nil)
	many.change = func(s *specimen) {
		s.expect.Gates["archive"] = "nccl.tar" // xz takes seconds for so many entries
		s.archive = archived{name: "nccl.tar", entries: slices.Repeat([]member{file("nccl/x", "")}, maxArchived+1)}
	}
	return []bad{
		row("no archive beside the wheel", "nccl_2.29.7+cuda13.0.verbs.sm90_x86_64.txz is missing beside the wheel", func(a *archived) { a.name = "" }),
		row("an archive of another release", "nccl_2.29.7+cuda13.0.verbs.sm90_x86_64.txz is missing beside", func(a *archived) { a.name = "nccl_2.29.3+cuda13.0_x86_64.txz" }),
		row("an archive with the library of another build", "lib/libnccl.so.2 is 82d20845", func(a *archived) { a.entries = layout("codf") }),
		entry("an archive without the library", "lib/libnccl.so.2 is missing", library, func(m *member) { *m = file("nccl/lib/libnccl_static.a", "") }),
		entry("an archive with another library under the soname", "lib/libnccl.so.2 is d9298a10", "nccl/lib/libnccl.so.2", func(m *member) { *m = file(m.Name, "other") }),
		entry("an archive without the name for the linker", "lib/libnccl.so is missing", "nccl/lib/libnccl.so", func(m *member) { m.Name = "nccl/lib/nccl.so" }),
		entry("an archive with a link out of it", "libnccl.so.2 leads to ../../../lib/libnccl.so.2.29.7, out of its directory", "nccl/lib/libnccl.so.2", func(m *member) { m.Linkname = "../../../lib/libnccl.so.2.29.7" }),
		more("an archive with an absolute link", "nccl/lib/conf leads to /etc/passwd", link("nccl/lib/conf", "/etc/passwd")),
		more("an archive with a path out of it", `"nccl/../../x" leads out of the archive`, file("nccl/../../x", "")),
		more("an archive with a second top directory", "usr/lib/x lies beside nccl", file("usr/lib/x", "")),
		entry("an archive with a setuid file", "libnccl.so.2.29.7 has mode 4755", library, func(m *member) { m.Mode = 0o4755 }),
		entry("an archive with the files of a user", "libnccl.so.2.29.7 belongs to 1000:1000", library, func(m *member) { m.Uid, m.Gid = 1000, 1000 }),
		cut("an archive without its last byte", "unexpected EOF", func(size int) int { return size - 1 }),
		cut("an archive without the sums at its end", "the file ends before its stream", func(size int) int { return size - 24 }),
		cut("an archive truncated in the middle", "unexpected EOF", func(size int) int { return size / 2 }),
		row("an empty archive", "it is empty", func(a *archived) { a.entries = []member{} }),
		many,
		row("an archive of 2 KiB with a file of 1 TiB", "x has 1099511627776 bytes, above the limit", func(a *archived) { a.plain = sparse() }),
	}
}
