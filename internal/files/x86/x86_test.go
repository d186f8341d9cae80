package x86

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The encodings are the output of GNU as 2.40.
func TestDecode(t *testing.T) {
	for want, encodings := range map[Feature][]string{
		"": {
			"c3 ret", "90 nop", "55 push %rbp", "4889e5 mov %rsp,%rbp", "b801000000 mov $0x1,%eax",
			"48b88877665544332211 movabs $0x1122334455667788,%rax", "a08877665544332211 movabs 0x1122334455667788,%al",
			"66b80100 mov $0x1,%ax", "488d0510000000 lea 0x10(%rip),%rax", "488d4c9810 lea 0x10(%rax,%rbx,4),%rcx",
			"488b14c578563412 mov 0x12345678(,%rax,8),%rdx", "488b0424 mov (%rsp),%rax", "498b0424 mov (%r12),%rax",
			"488b4500 mov 0x0(%rbp),%rax", "498b4500 mov 0x0(%r13),%rax", "678b18 mov (%eax),%ebx", "83c07f add $0x7f,%eax",
			"480578563412 add $0x12345678,%rax", "66053412 add $0x1234,%ax", "f6c101 test $0x1,%cl", "f6d1 not %cl",
			"f7c178563412 test $0x12345678,%ecx", "66f7c13412 test $0x1234,%cx", "48f7d9 neg %rcx",
			"486bd803 imul $0x3,%rax,%rbx", "4869d878563412 imul $0x12345678,%rax,%rbx", "c8100001 enter $0x10,$0x1",
			"c20800 ret $0x8", "cd80 int $0x80", "e8fb0f0000 call .+0x1000", "eb00 jmp .+2", "7400 je .+2",
			"0f84fa0f0000 je .+0x1000", "f0480fb10f lock cmpxchg %rcx,(%rdi)", "0fc70f cmpxchg8b (%rdi)", "f3a4 rep movsb",
			"f30f1efa endbr64", "0f0b ud2", "0f05 syscall", "0fa2 cpuid", "db7c2408 fstpt 0x8(%rsp)", "d93c24 fnstcw (%rsp)",
			"2e660f1f0400 cs nopw 0x0(%rax,%rax,1)", "0f28c8 movaps %xmm0,%xmm1", "660f70c801 pshufd $0x1,%xmm0,%xmm1",
			"0fc2c801 cmpltps %xmm0,%xmm1", "660fc5c001 pextrw $0x1,%xmm0,%eax", "660f73d804 psrldq $0x4,%xmm0",
			"480fa4c303 shld $0x3,%rax,%rbx", "480fbae003 bt $0x3,%rax", "f3480fbcd8 tzcnt %rax,%rbx", "480fbcd8 bsf %rax,%rbx",
			"8f00 pop (%rax)",
		},
		"cx16":   {"f0480fc70f lock cmpxchg16b (%rdi)"},
		"popcnt": {"f3480fb8d8 popcnt %rax,%rbx"},
		"lzcnt":  {"f3480fbdd8 lzcnt %rax,%rbx"},
		"sse3": {
			"f20f7cc8 haddps %xmm0,%xmm1", "f20f12c8 movddup %xmm0,%xmm1", "f20ff008 lddqu (%rax),%xmm1",
			"f30f16c8 movshdup %xmm0,%xmm1",
		},
		"ssse3": {"660f3800c8 pshufb %xmm0,%xmm1", "660f3a0fc804 palignr $0x4,%xmm0,%xmm1"},
		"sse4.1": {
			"660f383bc8 pminud %xmm0,%xmm1", "660f3a22c001 pinsrd $0x1,%eax,%xmm0", "660f3a0bc801 roundsd $0x1,%xmm0,%xmm1",
		},
		"sse4.2": {
			"660f3837c8 pcmpgtq %xmm0,%xmm1", "660f3a63c801 pcmpistri $0x1,%xmm0,%xmm1", "f20f38f1d8 crc32l %eax,%ebx",
		},
		"movbe":  {"0f38f018 movbe (%rax),%ebx"},
		"adx":    {"66480f38f6d8 adcx %rax,%rbx"},
		"aes":    {"660f38dcc8 aesenc %xmm0,%xmm1", "660f3adfc801 aeskeygenassist $0x1,%xmm0,%xmm1"},
		"pclmul": {"660f3a44c801 pclmulqdq $0x1,%xmm0,%xmm1"},
		"sha":    {"0f38cbc8 sha256rnds2 %xmm0,%xmm1", "0f3accc801 sha1rnds4 $0x1,%xmm0,%xmm1"},
		"gfni":   {"660f38cfc8 gf2p8mulb %xmm0,%xmm1"},
		"avx": {
			"c5f058d0 vaddps %xmm0,%xmm1,%xmm2", "c5f458d0 vaddps %ymm0,%ymm1,%ymm2", "c5fe6f00 vmovdqu (%rax),%ymm0",
			"c5f877 vzeroupper", "c5f1fed0 vpaddd %xmm0,%xmm1,%xmm2", "c5f970c801 vpshufd $0x1,%xmm0,%xmm1",
			"c5f4c2d001 vcmpltps %ymm0,%ymm1,%ymm2", "c4e37518d001 vinsertf128 $0x1,%xmm0,%ymm1,%ymm2",
			"c4e27d1800 vbroadcastss (%rax),%ymm0", "c4e27d17c8 vptest %ymm0,%ymm1",
		},
		"avx2": {
			"c5f5fed0 vpaddd %ymm0,%ymm1,%ymm2", "c5fd70c801 vpshufd $0x1,%ymm0,%ymm1", "c5f573d804 vpsrldq $0x4,%ymm0,%ymm1",
			"c4e27d18c0 vbroadcastss %xmm0,%ymm0", "c4e3fd00c801 vpermq $0x1,%ymm0,%ymm1",
			"c4e37538d001 vinserti128 $0x1,%xmm0,%ymm1,%ymm2", "c4e27d901488 vpgatherdd %ymm0,(%rax,%ymm1,4),%ymm2",
			"c4e27500d0 vpshufb %ymm0,%ymm1,%ymm2", "c5fdd7c0 vpmovmskb %ymm0,%eax",
		},
		"f16c": {"c4e27d13c8 vcvtph2ps %xmm0,%ymm1", "c4e37d1dc100 vcvtps2ph $0x0,%ymm0,%xmm1"},
		"fma":  {"c4e275b8d0 vfmadd231ps %ymm0,%ymm1,%ymm2", "c4e2f1ad10 vfnmadd213sd (%rax),%xmm1,%xmm2"},
		"bmi":  {"c4e2e0f2c8 andn %rax,%rbx,%rcx", "c4e2e0f3c8 blsr %rax,%rbx", "c4e2f8f7cb bextr %rax,%rbx,%rcx"},
		"bmi2": {
			"c4e2f8f5cb bzhi %rax,%rbx,%rcx", "c4e2f9f7cb shlx %rax,%rbx,%rcx", "c4e2e3f6c8 mulx %rax,%rbx,%rcx",
			"c4e3fbf0d803 rorx $0x3,%rax,%rbx",
		},
		"avxvnni": {"c4e27550d0 {vex} vpdpbusd %ymm0,%ymm1,%ymm2"},
		"avx512": {
			"62f1744858d0 vaddps %zmm0,%zmm1,%zmm2", "62f17548efd0 vpxord %zmm0,%zmm1,%zmm2",
			"62f3754825d001 vpternlogd $0x1,%zmm0,%zmm1,%zmm2", "62f1fe486f4001 vmovdqu64 0x40(%rax),%zmm0",
			"62f17d4870c801 vpshufd $0x1,%zmm0,%zmm1", "62f1754874c8 vpcmpeqb %zmm0,%zmm1,%k1",
			"62f5744858d0 vaddph %zmm0,%zmm1,%zmm2", "c5fb92c8 kmovd %eax,%k1", "c4e1f998c8 kortestd %k0,%k1",
			"c4e3f932c801 kshiftlw $0x1,%k0,%k1",
		},
		"xop": {"8fe878c2c801 vprotd $0x1,%xmm0,%xmm1", "c4e3e96ad810 vfmaddss %xmm0,%xmm1,%xmm2,%xmm3"},
	} {
		for _, encoding := range encodings {
			decodes(t, encoding, want)
		}
	}
}

// decodes checks an encoding, its code and its text, whole and cut off anywhere.
func decodes(t *testing.T, encoding string, want Feature) {
	t.Helper()
	digits, text, _ := strings.Cut(encoding, " ")
	code := must.Get(hex.DecodeString(digits))(t)
	// The bytes after the instruction must not count as part of it.
	got, err := Decode(append(slices.Clone(code), slices.Repeat([]byte{0x90}, MaxLength)...))
	check.That(t, err == nil && got == (Instruction{len(code), want}),
		"%s (%s): got %+v, %v, want %d bytes of %q", text, digits, got, err, len(code), want)
	for n := range code {
		short, err := Decode(code[:n])
		check.That(t, errors.Is(err, ErrShort), "%s: its first %d bytes are %+v, %v", text, n, short, err)
	}
}

func TestNoInstructions(t *testing.T) {
	for _, code := range []string{
		"06", "0e", "1e", "27", "37", "60", "82c001", "9a", "ce", "d6", "ea", // invalid in 64-bit code
		"0f04", "0f0a", "0f24c0", "0f36", "0f3b",
		"c4e058c0", "62f44848c0", // VEX and EVEX with opcode maps that do not exist
		"66", // more prefixes than an instruction may have
	} {
		raw := must.Get(hex.DecodeString(code))(t)
		raw = append(raw, slices.Repeat([]byte{0x66}, MaxLength)...)
		got, err := Decode(raw)
		check.That(t, errors.Is(err, ErrInvalid), "%s: got %+v, %v", code, got, err)
	}
	_, err := Decode(nil)
	check.That(t, errors.Is(err, ErrShort), "nothing: %v", err)
}

func TestLevels(t *testing.T) {
	for name, want := range map[string]string{
		"x86-64":    "",
		"x86-64-v2": "sse3 ssse3 sse4.1 sse4.2 popcnt cx16",
		"x86-64-v3": "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 avx avx2 bmi bmi2 f16c fma lzcnt movbe",
		"x86-64-v4": "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 avx avx2 bmi bmi2 f16c fma lzcnt movbe avx512",
	} {
		all, ok := Level(name)
		var names []string
		for _, f := range all {
			names = append(names, string(f))
			check.That(t, slices.Contains(Features(), f), "%s is not listed", f)
		}
		check.That(t, ok && strings.Join(names, " ") == want, "%s: %v, %v", name, names, ok)
	}
	_, ok := Level("x86-64-v5")
	check.That(t, !ok, "there is no level 5")
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0})
	f.Add([]byte{0x8f, 0xe8, 0x78, 0xc2, 0xc8, 0x01})
	f.Fuzz(func(t *testing.T, code []byte) {
		in, err := Decode(code)
		check.That(t, err != nil || in.Length >= 1 && in.Length <= min(len(code), MaxLength), "%x has %d bytes", code, in.Length)
		check.That(t, in.Feature == "" || slices.Contains(Features(), in.Feature), "%x takes %q", code, in.Feature)
	})
}
