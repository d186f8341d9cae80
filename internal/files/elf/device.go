package elf

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Target is a kind of GPU for which a library has code.
type Target struct {
	Vendor   string   // "amd" or "nvidia"
	Arch     string   // gfx90a, sm_90, sm_90a; compute_90 for PTX
	Features []string // xnack+, sramecc-; sorted
}

// String returns the target in the notation of compilers, such as gfx90a:xnack+.
func (t Target) String() string {
	return strings.Join(append([]string{t.Arch}, t.Features...), ":")
}

// format describes how a vendor packs device code: a section of containers, each with a
// magic number at its start. The linker concatenates the containers of several
// translation units, with padding between them.
type format struct {
	section string
	magics  []string
	// read consumes one container, including its magic, and visits its objects.
	read func(r *bufio.Reader, visit visitor) error
}

var formats = []format{
	{hipFatbin, []string{compressedMagic, plainMagic}, readAMD},
	{loaded, []string{nvidiaMagic}, readRegion},
	{relocatable, []string{nvidiaMagic}, readRegion},
}

// object is a piece of code for one target in a container.
type object struct {
	target  Target
	machine elf.Machine // of the code's ELF file; EM_NONE for PTX, which is text
	method  method
	length  uint64 // bytes in the container
	size    uint64 // unpacked bytes; unset if not packed
	code    io.Reader
}

// A visitor processes one object. The caller skips the code left unread, and returns an
// error if it is truncated.
type visitor func(object) error

// DeviceTargets returns the GPU targets for which a library has code, sorted and
// without duplicates. It returns none for a library without device code.
func DeviceTargets(r io.ReaderAt) ([]Target, error) { return ask[[]Target](r, "targets") }

// deviceTargets is the work of a child.
func deviceTargets(r io.ReaderAt) ([]Target, error) {
	found := map[string]Target{}
	err := eachObject(r, func(_ string, o object) error {
		found[o.target.key()] = o.target
		return nil
	})
	if err != nil {
		return nil, err
	}
	var targets []Target
	for _, key := range slices.Sorted(maps.Keys(found)) {
		targets = append(targets, found[key])
	}
	return targets, nil
}

// eachObject visits every object of device code in a library, by section.
func eachObject(r io.ReaderAt, visit func(section string, o object) error) error {
	img, err := openImage(r)
	if err != nil {
		return err
	}
	for _, format := range formats {
		for _, s := range img.file.Sections {
			if s.Size == 0 || s.Name != format.section {
				continue
			}
			err := readSection(img, s, format, func(o object) error { return visit(s.Name, o) })
			if err != nil {
				return fmt.Errorf("reading device code in section %q: %w", s.Name, err)
			}
		}
	}
	return nil
}

// readSection reads a section from front to back. The work is therefore linear in its
// size, whatever its headers claim.
func readSection(img *image, s *elf.Section, f format, visit visitor) error {
	if s.Type == elf.SHT_NOBITS {
		return errors.New("it has no bytes in the file: is this a debug file?")
	}
	count, err := containers(bufio.NewReaderSize(img.bytesOf(s), 64<<10), f.magics, func(r *bufio.Reader) error {
		return f.read(r, visit)
	})
	if err == nil && count == 0 {
		err = errors.New("it holds no known container")
	}
	return err
}

// visitPart visits an object in the next n bytes, and reads to their end.
func visitPart(r io.Reader, n uint64, o object, visit visitor) error {
	code := &io.LimitedReader{R: r, N: int64(min(n, 1<<62))}
	o.code, o.length = code, n
	if err := visit(o); err != nil {
		return err
	}
	if err := skip(r, uint64(code.N)); err != nil {
		return fmt.Errorf("%d bytes of code for %v do not fit: %w", n, o.target, err)
	}
	return nil
}

// key identifies a target and gives the sort order.
func (t Target) key() string { return t.Vendor + " " + t.String() }

// containers calls read at each magic in the stream and returns the number of
// containers.
func containers(r *bufio.Reader, magics []string, read func(*bufio.Reader) error) (int, error) {
	for count := 0; ; count++ {
		err := seek(r, magics)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if err := read(r); err != nil {
			return count, fmt.Errorf("container %d: %w", count, noEOF(err))
		}
	}
}

// seek discards bytes up to the next magic. It returns io.EOF if there is none.
func seek(r *bufio.Reader, magics []string) error {
	for {
		for _, magic := range magics {
			head, err := r.Peek(len(magic))
			if string(head) == magic {
				return nil
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		if _, err := r.Discard(1); err != nil {
			return err
		}
	}
}

// skip discards n bytes. Fewer bytes are an error.
func skip(r io.Reader, n uint64) error {
	if n > 1<<62 {
		return io.ErrUnexpectedEOF
	}
	_, err := io.CopyN(io.Discard, r, int64(n))
	return noEOF(err)
}

// noEOF turns io.EOF into io.ErrUnexpectedEOF, for an end inside a container.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// products maps the product name of a GPU, as normalized by [Architecture], to the
// architecture of its code. AMD's names come from its system requirements for ROCm, and
// NVIDIA's from its list of compute capabilities.
var products = map[string]string{
	"mi50": "gfx906", "mi60": "gfx906", "vii": "gfx906", "mi100": "gfx908",
	"mi200": "gfx90a", "mi210": "gfx90a", "mi250": "gfx90a", "mi250x": "gfx90a",
	"mi300": "gfx942", "mi300a": "gfx942", "mi300x": "gfx942", "mi308x": "gfx942", "mi325": "gfx942", "mi325x": "gfx942",
	"mi350": "gfx950", "mi350x": "gfx950", "mi355": "gfx950", "mi355x": "gfx950",
	"6800xt": "gfx1030", "6900xt": "gfx1030", "w6800": "gfx1030",
	"7900xtx": "gfx1100", "7900xt": "gfx1100", "7900gre": "gfx1100", "w7900": "gfx1100", "w7800": "gfx1100", "7800xt": "gfx1101", "w7700": "gfx1101",
	"9070": "gfx1201", "9070xt": "gfx1201", "9060xt": "gfx1200",

	"p100": "sm_60", "p40": "sm_61", "v100": "sm_70", "t4": "sm_75", "2080ti": "sm_75",
	"a100": "sm_80", "a800": "sm_80", "a30": "sm_80",
	"a10": "sm_86", "a10g": "sm_86", "a40": "sm_86", "a6000": "sm_86", "3090": "sm_86", "3090ti": "sm_86", "3080": "sm_86",
	"l4": "sm_89", "l40": "sm_89", "l40s": "sm_89", "4090": "sm_89", "4080": "sm_89", "6000ada": "sm_89",
	"h100": "sm_90", "h200": "sm_90", "h800": "sm_90", "h20": "sm_90", "gh200": "sm_90",
	"b100": "sm_100", "b200": "sm_100", "gb200": "sm_100", "b300": "sm_103", "gb300": "sm_103",
	"5090": "sm_120", "5080": "sm_120",
}

var (
	makers = regexp.MustCompile(`^(nvidia|amd|instinct|tesla|geforce|quadro|radeon(pro)?|rtx|gtx|rx)+`)
	forms  = regexp.MustCompile(`(sxm\d?|pcie|nvl|oam|\d+gb|superchip)+$`)
)

// Architecture returns the code architecture of a GPU by its product name: gfx942 for
// MI300X and AMD Instinct MI300X, sm_90 for H200. It returns "" for other names.
func Architecture(name string) string {
	name = strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
	return products[forms.ReplaceAllString(makers.ReplaceAllString(name, ""), "")]
}

// IsArchitecture reports whether a GPU of the table runs code for arch, such as gfx906.
func IsArchitecture(arch string) bool {
	return slices.Contains(slices.Collect(maps.Values(products)), arch)
}
