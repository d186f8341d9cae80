package gate

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"builder/internal/wheel/wheeltest"
)

// badWheels are files that no installer, or not every one, takes for what they
// say that they are.
func badWheels() []bad {
	const (
		again  = "truncated, edited after the build, or made by a broken backend"
		module = "horovod/__init__.py"
		torch  = "torch/__init__.py"
		unread = "extension-present elf-needed cpu-isa build-paths device-code elf-symbols rendezvous " + running
	)
	row := func(what, says string, change func(*wheeltest.Wheel)) bad {
		return bad{what: what, of: horovodROCm, change: func(s *specimen) { change(&s.wheel) }, gate: "wheel-format", says: says, do: again}
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
	cut := func(what, also string, keep func(size int) int) bad {
		return damaged(what, "truncated, or no wheel", also, func(b []byte) []byte { return b[:keep(len(b))] })
	}
	return []bad{
		record("a hash in RECORD that is another file's", `"horovod/__init__.py" has hash "sha256=A`, "sha256=", "sha256=A"),
		record("a hash in RECORD that is too weak", "which is no sha256", "sha256=", "md5="),
		record("a size in RECORD that is wrong", `"horovod/__init__.py" has 99 bytes in RECORD, but 23 in the wheel`, ",23", ",99"),
		row("a file that is not in RECORD", `"horovod/extra.py" is not in RECORD`, func(w *wheeltest.Wheel) { w.Unlisted = []wheeltest.File{{Name: "horovod/extra.py"}} }),
		row("a file that lost its line in RECORD", `"horovod/__init__.py" is not in RECORD`, func(w *wheeltest.Wheel) {
			w.Record = func(lines []string) []string { return lines[1:] }
		}),
		row("a file of RECORD that is not in the wheel", `names "horovod/__init__.py", which is not in the wheel`, func(w *wheeltest.Wheel) { w.Omitted = []string{module} }),
		row("a file without a hash in RECORD", "has no hash in RECORD", func(w *wheeltest.Wheel) {
			w.Record = func(lines []string) []string { return append([]string{module + ",,\n"}, lines[1:]...) }
		}),
		row("no RECORD", "RECORD\": it is not in the wheel", func(w *wheeltest.Wheel) { w.Omitted = []string{w.Info() + "/RECORD"} }),
		row("no METADATA", "METADATA\": it is not in the wheel", func(w *wheeltest.Wheel) { w.Omitted = []string{w.Info() + "/METADATA"} }),
		{
			what: "the extension of another wheel, put in after the build", of: horovodROCm,
			change: func(s *specimen) {
				other := horovodROCm()
				other.library().Texts = []string{"other"}
				s.wheel.Swapped = map[string]string{s.extension: string(other.library().Bytes())}
			},
			gate: "wheel-format", says: `mpi_lib.cpython-311-x86_64-linux-gnu.so" has hash`, do: again,
		},
		cut("a wheel that lacks its last byte", unread, func(size int) int { return size - 1 }),
		cut("a wheel that is cut in its directory", unread, func(size int) int { return size - 300 }),
		cut("a wheel that is cut in the middle", "size "+unread, func(size int) int { return size / 2 }),
		cut("a wheel that is empty", "size "+unread, func(int) int { return 0 }),
		damaged("a wheel with a wrong byte in its extension", "mpi_lib.cpython-311-x86_64-linux-gnu.so", "elf-needed cpu-isa build-paths device-code elf-symbols rendezvous "+running, func(b []byte) []byte {
			b = bytes.Clone(b)
			name := []byte("mpi_lib.cpython-311-x86_64-linux-gnu.so")
			b[bytes.Index(b, name)+len(name)+100] ^= 0xff
			return b
		}),
		row("METADATA whose version lacks the local part", `says Version "0.28.1", the file name says "0.28.1+rocm5.7.tf2.13.0.gfx90a"`, func(w *wheeltest.Wheel) { w.Version = "0.28.1" }),
		{
			what: "a version that lacks the local part in all places", of: horovodROCm,
			change: func(s *specimen) { s.wheel.Name = strings.Replace(s.wheel.Name, "+rocm5.7.tf2.13.0.gfx90a", "", 1) },
			gate:   "wheel-format", says: "the version is 0.28.1, promised is 0.28.1+rocm5.7.tf2.13.0.gfx90a", do: "HOROVOD_LOCAL_VERSION",
		},
		row("METADATA whose local part names another ROCm", `says Version "0.28.1+rocm6.1.tf2.13.0.gfx90a"`, func(w *wheeltest.Wheel) { w.Version = "0.28.1+rocm6.1.tf2.13.0.gfx90a" }),
		row("a tag that WHEEL does not have", `says tags ["py3-none-any"]`, func(w *wheeltest.Wheel) { w.Tags = []string{"py3-none-any"} }),
		more("a file outside the promised packages", "torch/__init__.py lies outside the promised packages horovod", wheeltest.File{Name: torch}),
		more("a file that .data installs outside the promised packages", "data/purelib/torch/__init__.py lies outside", wheeltest.File{Name: "horovod-0.28.1+rocm5.7.tf2.13.0.gfx90a.data/purelib/" + torch}),
		more("a file that runs at every start of Python", "horovod.pth lies outside", wheeltest.File{Name: "horovod.pth", Text: "import os\n"}),
		more("an absolute path", `"/etc/profile.d/x.sh" is an absolute path`, wheeltest.File{Name: "/etc/profile.d/x.sh"}),
		more("a path out of the wheel", `"horovod/../../x.py" leaves the wheel by ..`, wheeltest.File{Name: "horovod/../../x.py"}),
		more("a symbolic link", `"horovod/link" is a symbolic link`, wheeltest.File{Name: "horovod/link", Text: "/etc/passwd", Mode: fs.ModeSymlink | 0o777}),
		row("a file that is there twice", `"horovod/__init__.py" is in the ZIP 2 times`, func(w *wheeltest.Wheel) { w.Unlisted = slices.Clone(w.Files[:1]) }),
		more("the metadata of a second package", "2 .dist-info directories", wheeltest.File{Name: "torch-2.6.0.dist-info/METADATA"}),
	}
}
