package sourcetree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

func TestRead(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	for _, name := range []string{"horovod-0.28.1/a.h", "horovod-0.28.1/../../etc/passwd", "horovod-0.28.1/other.h"} {
		out.WriteHeader(&tar.Header{Name: name, Size: 1, Typeflag: tar.TypeReg, Mode: 0o644})
		out.Write([]byte("x"))
	}
	out.Close()
	zip.Close()
	path := must.File(t, "x.tar.gz", packed.Bytes())
	tree, err := Read(path, func(name string) bool { return name == "a.h" })
	check.That(t, err == nil && len(tree.files) == 1 && string(tree.files["a.h"]) == "x", "got %v, %v", tree, err)
	wheel := wheeltest.Wheel{Name: "tool-1.0-py3-none-any.whl", Files: []wheeltest.File{{Name: "tool/a.h", Text: "x"}}}
	tree, err = Read(wheel.Write(t), func(name string) bool { return name == "tool/a.h" })
	check.That(t, err == nil && len(tree.files) == 1 && string(tree.files["tool/a.h"]) == "x", "a wheel: got %v, %v", tree, err)
	os.WriteFile(path, packed.Bytes()[:packed.Len()/2], 0o644)
	_, err = Read(path, func(string) bool { return true })
	check.That(t, err != nil, "half an archive was read without an error")
}
