package wheel

import (
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestParseName(t *testing.T) {
	tests := map[string]Name{
		"horovod-0.28.1-cp311-cp311-linux_x86_64.whl": {"horovod", "0.28.1", "", "cp311", "cp311", "linux_x86_64"},
		goodName: {"horovod", "0.28.1+rocm5.7", "", "cp311", "cp311", "linux_x86_64"},
		"a.b_c-1!2.0rc1-2_x-py2.py3-none-any.whl":               {"a.b_c", "1!2.0rc1", "2_x", "py2.py3", "none", "any"},
		"x-1-cp313-cp313t-manylinux_2_38_x86_64.linux_a.whl":    {"x", "1", "", "cp313", "cp313t", "manylinux_2_38_x86_64.linux_a"},
		"nvidia_nccl_cu12-2.29.7-py3-none-manylinux_2_18_a.whl": {"nvidia_nccl_cu12", "2.29.7", "", "py3", "none", "manylinux_2_18_a"},
	}
	for file, want := range tests {
		got, err := ParseName(file)
		if err != nil {
			t.Error(err)
			continue
		}
		check.Same(t, file, want, got)
		check.That(t, got.String() == file, "String() = %q, want %q", got, file)
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, file := range []string{
		"", ".whl", "horovod.whl", "horovod-1.tar.gz", "a-1-py3-none.whl", "a-1-b-py3-none-any.whl", "a-1-1-1-py3-none-any.whl",
		"a--py3-none-any.whl", "-1-py3-none-any.whl", "a-1-py3--any.whl", "a-1-py3-none-any..whl", "../a-1-py3-none-any.whl",
		"a-1-py3-none-a/b.whl", "a b-1-py3-none-any.whl", "a-1\n-py3-none-any.whl", "a-1-py3-none-any.whl\n",
	} {
		n, err := ParseName(file)
		check.That(t, err != nil, "ParseName(%q) = %+v, want an error", file, n)
	}
}

func TestTags(t *testing.T) {
	n := Name{Python: "py3.py2", ABI: "none", Platform: "linux_b.linux_a"}
	want := []string{"py2-none-linux_a", "py2-none-linux_b", "py3-none-linux_a", "py3-none-linux_b"}
	check.Same(t, "Tags", want, n.Tags())
}

func TestTagsAreBounded(t *testing.T) {
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat("a.", n), ".") }
	for tag, want := range map[string]bool{
		many(16) + "-" + many(16) + "-" + many(16): true, many(17) + "-" + many(241) + "-b": false, "a-b": false, "a-b-c-d": false,
	} {
		tags, ok := expandTag(tag)
		check.That(t, ok == want && (!ok || len(tags) == 1), "%.40s: %d tags, %v", tag, len(tags), ok)
	}
}

func TestIsLibrary(t *testing.T) {
	for member, want := range map[string]bool{
		"nccl/lib/libnccl.so.2": true, "horovod/mpi_lib.cpython-311-x86_64-linux-gnu.so": true, "a.so/x.py": false, "a.source": false,
	} {
		check.That(t, IsLibrary(member) == want, "%s: %v", member, !want)
	}
}

func TestNormalVersion(t *testing.T) {
	for _, same := range [][]string{ // each line lists spellings of one version
		{"0.28.1", " 0.28.1 ", "0.28.1.0"},
		{"0", "0.0"},
		{"0.28.1+rocm5.7.tf2.13", "0.28.1+ROCM5.7-tf2.13", "0.28.1+rocm5_7_tf2.13"},
		{"1-1", "1_1"},
		{"not a version", "NOT A VERSION"},
	} {
		for _, s := range same {
			check.Same(t, s, normalVersion(same[0]), normalVersion(s))
		}
	}
	for _, pair := range [][2]string{
		{"1+cu128", "1+cu129"},
		{"1", "1+a"},
		{"1", "1.dev0"},
		{"1.1", "1.10"},
		{"10", "1"},
		{"1rc1", "1"},
		{"1!1", "1"},
		{"1", "1.post0"},
		{"1-1", "1.1"},
		{"1-1", "1+1"},
		{"1+a", "1+0a"},
		{"1", "1+"},
		{"1.post1", "1.post1.0"},
	} {
		check.That(t, normalVersion(pair[0]) != normalVersion(pair[1]), "%q equals %q", pair[0], pair[1])
	}
}

func TestParseHeader(t *testing.T) {
	got := must.Get(ParseHeader([]byte(metadata)))(t)
	want := Header{"Metadata-Version": {"2.1"}, "Name": {"horovod"}, "Version": {"0.28.1+rocm5.7"}, "License": {"Apache\n        2.0"}}
	check.Same(t, "ParseHeader", want, got)
	for _, text := range []string{" begins with space", "no colon", ": no name", "a b: c"} {
		h, err := ParseHeader([]byte(text))
		check.That(t, err != nil, "ParseHeader(%q) = %v, want an error", text, h)
	}
}

func FuzzParseName(f *testing.F) {
	f.Add(goodName)
	f.Add("a-1-2-py2.py3-none-manylinux_2_38_x86_64.any.whl")
	f.Fuzz(func(t *testing.T, file string) {
		n, err := ParseName(file)
		if err != nil {
			return
		}
		check.That(t, n.String() == file && len(n.Tags()) <= maxTags, "%q is written as %q, with %d tags", file, n, len(n.Tags()))
	})
}

func TestGlibc(t *testing.T) {
	for platform, want := range map[string][2]string{
		"manylinux_2_38_x86_64":  {"2.38", "x86_64"},
		"manylinux_2_5_i686":     {"2.5", "i686"},
		"manylinux1_x86_64":      {"2.5", "x86_64"},
		"manylinux2010_x86_64":   {"2.12", "x86_64"},
		"manylinux2014_aarch64":  {"2.17", "aarch64"},
		"linux_x86_64":           {},
		"musllinux_1_2_x86_64":   {},
		"any":                    {},
		"manylinux_2_x86_64":     {},
		"manylinux_2_38_":        {},
		"manylinux2099_x86_64":   {},
		"macosx_14_0_arm64":      {},
		"x_manylinux2014_x86_64": {},
	} {
		glibc, machine := Glibc(platform)
		check.That(t, glibc == want[0] && machine == want[1], "%s: %q, %q; want %q", platform, glibc, machine, want)
	}
}
