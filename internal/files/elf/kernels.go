package elf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
)

// Use is what one kernel takes of an AMD GPU, as its compiler wrote into the metadata of
// the code object (llvm/docs/AMDGPUUsage.rst, code object V3 and later).
type Use struct {
	VGPRs   uint64 // vector registers of a work item, on gfx90a with those of the matrix unit
	SGPRs   uint64 // scalar registers of a wavefront
	Spilled uint64 // registers of both kinds that went to memory
	LDS     uint64 // bytes of a work group, without those that the host adds at launch
	Scratch uint64 // bytes of a work item, without those of functions called by table
	Code    uint64 // bytes of instructions
}

const (
	amdMetadata = 32 // NT_AMDGPU_METADATA
	maxNesting  = 16 // of its lists and maps; compilers write 5 levels
	maxNotes    = 4  // sections of an object; many can name the same bytes
)

// kernelUses returns the use of each kernel of an AMD code object by its name. Objects of
// code object V2 and of other vendors have none.
func kernelUses(f *elf.File) (map[string]Use, error) {
	uses := map[string]Use{}
	looked := 0
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || looked == maxNotes {
			continue
		}
		looked++
		notes, err := s.Data()
		if err != nil {
			return nil, err
		}
		err = eachNote(notes, 4, func(kind uint64, owner, text []byte) error {
			if kind != amdMetadata || !bytes.HasPrefix(owner, []byte("AMDGPU")) {
				return nil
			}
			return addUses(uses, text)
		})
		if err != nil {
			return nil, fmt.Errorf("its metadata: %w", err)
		}
	}
	return uses, nil
}

// addUses reads one document of metadata.
func addUses(uses map[string]Use, text []byte) error {
	r := msgpack{rest: text}
	top, _ := r.value(0).(map[string]any)
	kernels, _ := top["amdhsa.kernels"].([]any)
	for _, k := range kernels {
		of, _ := k.(map[string]any)
		name, _ := of[".name"].(string)
		number := func(key string) uint64 { n, _ := of[key].(uint64); return n }
		uses[name] = Use{
			VGPRs:   number(".vgpr_count"),
			SGPRs:   number(".sgpr_count"),
			Spilled: number(".vgpr_spill_count") + number(".sgpr_spill_count"),
			LDS:     number(".group_segment_fixed_size"),
			Scratch: number(".private_segment_fixed_size"),
		}
	}
	return r.err
}

// msgpack reads the values of MessagePack that metadata has: maps with names, lists,
// strings, booleans and numbers that are not negative. After an error all values are
// empty.
type msgpack struct {
	rest []byte
	err  error
}

// take returns the next n bytes.
func (r *msgpack) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.err = nil, errors.New("it ends within a value")
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// number reads a number of n bytes, the highest first.
func (r *msgpack) number(n uint64) (v uint64) {
	for _, b := range r.take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *msgpack) value(depth int) any {
	first := r.number(1)
	switch {
	case r.err != nil:
		return nil
	case depth > maxNesting:
		r.err = fmt.Errorf("it is nested deeper than %d", maxNesting)
		return nil
	case first < 0x80:
		return first
	case first < 0x90:
		return r.mapOf(first&0xf, depth)
	case first < 0xa0:
		return r.list(first&0xf, depth)
	case first < 0xc0:
		return string(r.take(first & 0x1f))
	case first == 0xc0, first == 0xc2, first == 0xc3: // nil and booleans
		return nil
	case first >= 0xcc && first <= 0xd3: // four sizes without a sign, and four with one
		return r.number(1 << (first & 3))
	case first >= 0xd9 && first <= 0xdb:
		return string(r.take(r.number(1 << (first - 0xd9))))
	case first == 0xdc, first == 0xdd:
		return r.list(r.number(2<<(first-0xdc)), depth)
	case first == 0xde, first == 0xdf:
		return r.mapOf(r.number(2<<(first-0xde)), depth)
	}
	r.err = fmt.Errorf("it has a value of kind %#x", first)
	return nil
}

func (r *msgpack) list(n uint64, depth int) any {
	var values []any
	for ; n > 0 && r.err == nil; n-- {
		values = append(values, r.value(depth+1))
	}
	return values
}

func (r *msgpack) mapOf(n uint64, depth int) any {
	values := map[string]any{}
	for ; n > 0 && r.err == nil; n-- {
		key, _ := r.value(depth + 1).(string)
		values[key] = r.value(depth + 1)
	}
	return values
}
