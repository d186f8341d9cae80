package gate

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// badWheels lists files refused by some or all installers, or read differently than
// their names claim.
func badWheels() []bad {
	const (
		again  = "truncated, edited after the build, or made by a broken backend"
		module = "horovod/__init__.py"
		torch  = "torch/__init__.py"
		dist   = "horovod-0.28.1+rocm5.7.tf2.13.0.dist-info/"
		data   = "horovod-0.28.1+rocm5.7.tf2.13.0.data/"
		unread = "python-source extension-present elf-needed cpu-isa build-paths device-code elf-symbols rendezvous platform " + running
	)
	row := func(what, says string, change func(*wheeltest.Wheel)) bad {
		return bad{what: what, of: horovodROCm, change: func(s *specimen) { change(&s.wheel) }, gate: "wheel-format", says: says, do: again}
	}
	// Whoever holds such a wheel is never told how to allow its file.
	outside := func(what, says string, f wheeltest.File) bad {
		b := row(what, says, func(w *wheeltest.Wheel) { w.Files = append(w.Files, f) })
		b.do = "do not install it"
		return b
	}
	record := func(what, says, from, to string) bad {
		return row(what, says, func(w *wheeltest.Wheel) {
			w.Record = func(lines []string) []string {
				lines[0] = strings.Replace(lines[0], from, to, 1)
				return lines
			}
		})
	}
	more := func(what, says string, f wheeltest.File) bad {
		return row(what, says, func(w *wheeltest.Wheel) { w.Files = append(w.Files, f) })
	}
	damaged := func(what, says, also string, damage func([]byte) []byte) bad {
		b := row(what, says, nil)
		b.also, b.change = also, func(s *specimen) {
			s.damage = damage
			s.box.failure = errors.New("installing the wheel: not a ZIP file")
		}
		return b
	}
	// If a file cannot be opened, all gates on its content refuse too.
	closed := func(b bad) bad {
		b.also = "python-source extension-present elf-needed cpu-isa build-paths device-code elf-symbols " + running
		return b
	}
	hostile := func(what, says string, damage func([]byte) []byte) bad { return damaged(what, says, unread, damage) }
	cut := func(what, also string, keep func(size int) int) bad {
		return damaged(what, "truncated, or not a wheel", also, func(b []byte) []byte { return b[:keep(len(b))] })
	}
	return []bad{
		record("another file's hash in RECORD", `"horovod/__init__.py" has hash "sha256=A`, "sha256=", "sha256=A"),
		record("a too weak hash in RECORD", "which is not a sha256", "sha256=", "md5="),
		record("a wrong size in RECORD", `"horovod/__init__.py" has 99 bytes in RECORD, but 23 in the wheel`, ",23", ",99"),
		row("a file outside RECORD", `"horovod/extra.py" is not in RECORD`, func(w *wheeltest.Wheel) { w.Unlisted = []wheeltest.File{{Name: "horovod/extra.py"}} }),
		row("a file that lost its line in RECORD", `"horovod/__init__.py" is not in RECORD`, func(w *wheeltest.Wheel) {
			w.Record = func(lines []string) []string { return lines[1:] }
		}),
		row("a file of RECORD missing in the wheel", `names "horovod/__init__.py", which is not in the wheel`, func(w *wheeltest.Wheel) { w.Omitted = []string{module} }).and("python-source"),
		row("a file without a hash in RECORD", "has no hash in RECORD", func(w *wheeltest.Wheel) {
			w.Record = func(lines []string) []string { return append([]string{module + ",,\n"}, lines[1:]...) }
		}),
		row("no RECORD", "RECORD\": it is not in the wheel", func(w *wheeltest.Wheel) { w.Omitted = []string{w.Info() + "/RECORD"} }),
		row("no METADATA", "METADATA\": it is not in the wheel", func(w *wheeltest.Wheel) { w.Omitted = []string{w.Info() + "/METADATA"} }),
		refused("the extension of another wheel, put in after the build", horovodROCm, func(s *specimen) {
			other := horovodROCm()
			other.library().Texts = []string{"other"}
			s.wheel.Swapped = map[string]string{s.extension: string(other.library().Bytes())}
		}, "wheel-format", `mpi_lib.cpython-311-x86_64-linux-gnu.so" has hash`, again, "import launcher allreduce-2 train-step"),
		cut("a wheel without its last byte", unread, func(size int) int { return size - 1 }),
		cut("a wheel truncated in its directory", unread, func(size int) int { return size - 300 }),
		cut("a wheel truncated in the middle", "size "+unread, func(size int) int { return size / 2 }),
		cut("an empty wheel", "size "+unread, func(int) int { return 0 }),
		damaged("a wheel with a wrong byte in its extension", "mpi_lib.cpython-311-x86_64-linux-gnu.so", "elf-needed cpu-isa build-paths device-code elf-symbols rendezvous platform "+running, func(b []byte) []byte {
			b = bytes.Clone(b)
			name := []byte("mpi_lib.cpython-311-x86_64-linux-gnu.so")
			b[bytes.Index(b, name)+len(name)+100] ^= 0xff
			return b
		}),
		row("METADATA without the local part of the version", `has Version "0.28.1", the file name has "0.28.1+rocm5.7.tf2.13.0"`, func(w *wheeltest.Wheel) { w.Version = "0.28.1" }),
		refused("a version without the local part in all places", horovodROCm,
			func(s *specimen) { s.wheel.Name = strings.Replace(s.wheel.Name, "+rocm5.7.tf2.13.0", "", 1) },
			"wheel-format", "the version is 0.28.1, expected 0.28.1+rocm5.7.tf2.13.0", "HOROVOD_LOCAL_VERSION"),
		refused("a version with a local part that nobody promised", horovodROCm, func(s *specimen) { s.expect.Version = "0.28.1" },
			"wheel-format", "the version is 0.28.1+rocm5.7.tf2.13.0, expected 0.28.1", "or correct expect.version"),
		row("METADATA whose local part names another ROCm", `has Version "0.28.1+rocm6.1.tf2.13.0.gfx90a"`, func(w *wheeltest.Wheel) { w.Version = "0.28.1+rocm6.1.tf2.13.0.gfx90a" }),
		row("a requirement with an address", "installers fetch it from that address", func(w *wheeltest.Wheel) {
			w.Requires = []string{"helper @ https://example.org/helper-1-py3-none-any.whl"}
		}),
		row("a tag missing in WHEEL", `has tags ["py3-none-any"]`, func(w *wheeltest.Wheel) { w.Tags = []string{"py3-none-any"} }),
		outside("a file outside the promised packages", "torch/__init__.py lies outside the promised packages horovod", wheeltest.File{Name: torch}),
		outside("a file installed by .data outside the promised packages", "data/purelib/torch/__init__.py lies outside", wheeltest.File{Name: data + "purelib/" + torch}),
		outside("a file that runs at every start of Python", "horovod.pth lies outside", wheeltest.File{Name: "horovod.pth", Text: "import os\n"}),
		closed(more("an absolute path", `"/etc/profile.d/x.sh" is an absolute path`, wheeltest.File{Name: "/etc/profile.d/x.sh"})),
		closed(more("a path out of the wheel", `"horovod/../../x.py" leaves the wheel by ..`, wheeltest.File{Name: "horovod/../../x.py"})),
		closed(more("a symbolic link", `"horovod/link" is a symbolic link`, wheeltest.File{Name: "horovod/link", Text: "/etc/passwd", Mode: fs.ModeSymlink | 0o777})),
		closed(row("a file twice in the wheel", `"horovod/__init__.py" is in the ZIP 2 times`, func(w *wheeltest.Wheel) { w.Unlisted = slices.Clone(w.Files[:1]) })),
		closed(more("a name too long for file systems", "has a name of more than 255 bytes", wheeltest.File{Name: "horovod/" + strings.Repeat("n", 300)})),
		closed(more("a file and a directory of one name", `"horovod/__init__.py" is a file in the ZIP, and a directory for`, wheeltest.File{Name: module + "/x.py"})),
		hostile("a file header with another name than the directory", `"horovod/__init__.py": its own header names it "horovod/__main__.py"`, func(b []byte) []byte {
			return bytes.Replace(bytes.Clone(b), []byte(module), []byte("horovod/__main__.py"), 1)
		}),
		hostile("a second end record, which pip reads", "readers disagree about the record to use", func(b []byte) []byte {
			end := len(b) - 22
			second := slices.Concat([]byte("PK\x06\x06\x2c"), make([]byte, 51), []byte("PK\x06\x07"), make([]byte, 16))
			return slices.Concat(b[:end], second, b[end:])
		}),
		hostile("a file behind the others, without a name in the directory", "before, between or behind", func(b []byte) []byte {
			return slices.Concat(b[:len(b)-22], []byte("PK\x03\x04"), b[len(b)-22:])
		}),
		hostile("bytes behind the end", "bytes follow the end record", func(b []byte) []byte { return append(bytes.Clone(b), "hello"...) }),
		outside("a module that Python runs at its start", "sitecustomize.py lies outside the promised packages horovod", wheeltest.File{Name: "sitecustomize.py"}),
		outside("a file installed by .data for every shell", "installs etc/profile.d below the prefix", wheeltest.File{Name: data + "data/etc/profile.d/x.sh"}),
		outside("a program that hides the system's", "the program python3 would hide the system's", wheeltest.File{Name: data + "scripts/python3", Text: "#!/bin/sh\n", Mode: 0o755}),
		outside("a program of entry_points.txt that hides the system's", "the program pip would hide the system's", wheeltest.File{Name: dist + "entry_points.txt", Text: "[console_scripts]\npip = horovod:main\n"}),
		more("lines of entry_points.txt that only Python separates", "which Python reads as several lines", wheeltest.File{Name: dist + "entry_points.txt", Text: "[x]\f[console_scripts]\fmpirun = horovod:main\n"}).and("python-source"),
		more("a directory .data of another wheel, which pip installs too", "in another .data directory", wheeltest.File{Name: "other-1.data/purelib/x.py"}),
		more("compiled code that runs in place of its source", "forbids Python to compare it with its source", wheeltest.File{Name: "horovod/__pycache__/__init__.cpython-311.pyc", Text: "\xa7\r\r\n\x01\x00\x00\x00code"}),
		more("two files for one place", "install to the same path", wheeltest.File{Name: data + "purelib/horovod/__init__.py", Text: "__version__ = '0.28.1'\n"}),
		more("a library for another machine beside the extension", "horovod/lib/libhelper.so is for aarch64", wheeltest.File{Name: "horovod/lib/libhelper.so", Text: string((&elftest.Library{Machine: "aarch64"}).Bytes())}).and("extension-present"),
		more("a program for another machine", "scripts/horovodrun is for aarch64", wheeltest.File{Name: data + "scripts/horovodrun", Text: string((&elftest.Library{Machine: "aarch64"}).Bytes()), Mode: 0o755}).and("extension-present"),
		more("a library for musl", "needs libc.musl-x86_64.so.1, and the tag is linux_x86_64", wheeltest.File{Name: "horovod/lib/libhelper.so", Text: string((&elftest.Library{Needed: []string{"libc.musl-x86_64.so.1"}}).Bytes())}).and("extension-present"),
		more("an extension of TensorFlow in place of another framework's", "horovod/mxnet/x.so is in the directory of mxnet, but for tensorflow", wheeltest.File{Name: "horovod/mxnet/x.so", Text: string((&elftest.Library{Needed: []string{"libtensorflow_framework.so.2"}}).Bytes())}).and("extension-present"),
		row("a tag for every Python, on an extension for one", "is named for CPython 311 alone, and the tag py3-none is for others too", func(w *wheeltest.Wheel) { w.Name = strings.Replace(w.Name, "cp311-cp311", "py3-none", 1) }),
		row("a tag for every later Python, on an extension for one", "is named for CPython 311 alone, and the tag cp311-abi3 is for others too", func(w *wheeltest.Wheel) { w.Name = strings.Replace(w.Name, "cp311-cp311", "cp311-abi3", 1) }),
		more("a file by which an installer notes the address of the wheel", `dist-info/direct_url.json", which only installers write`, wheeltest.File{Name: dist + "direct_url.json", Text: `{"url": "https://example.org/x.whl", "archive_info": {}}`}),
		refused("code that the loader writes over that of the file", horovodROCm, func(s *specimen) {
			s.library().Relocations = []elftest.Relocation{{Function: "horovod_init", Symbol: "__gmon_start__", Code: [8]byte(append(slices.Clone(avx2), 0x90, 0x90, 0x90))}}
		}, "wheel-format", `cannot be read as a library: the loader writes to section ".text"`, again, "elf-needed cpu-isa build-paths elf-symbols check-build built-flags"),
		refused("code that can write over itself", horovodROCm, func(s *specimen) { s.library().Writable = true },
			"wheel-format", "cannot be read as a library: segment 0 is writable and executable", again, "elf-needed cpu-isa build-paths device-code elf-symbols check-build built-flags"),
		more("the metadata of a second package", "2 .dist-info directories", wheeltest.File{Name: "torch-2.6.0.dist-info/METADATA"}),
	}
}
