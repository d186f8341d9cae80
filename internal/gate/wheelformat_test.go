package gate

import "testing"

func TestOutside(t *testing.T) {
	packages := []string{"horovod", "nvidia"}
	for name, want := range map[string]bool{
		"horovod/__init__.py":                        false,
		"nvidia/nccl/lib/libnccl.so.2":               false,
		"horovod-1.dist-info/METADATA":               false,
		"horovod-1.data/scripts/horovodrun":          false,
		"horovod-1.data/headers/x.h":                 false,
		"horovod-1.data/purelib/horovod/__init__.py": false,
		"horovod-1.data/platlib/horovod/x.so":        false,
		"torch/__init__.py":                          true,
		"horovod.pth":                                true,
		"horovod-1.data/purelib/torch/__init__.py":   true,
		"horovod-1.data/platlib/evil.pth":            true,
		"horovod-1.data/data/etc/x":                  true,
		"torch-1.dist-info/METADATA":                 true,
		"torch-1.data/scripts/torchrun":              true,
	} {
		if got := outside(name, "horovod-1.dist-info", packages); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if outside("anything", "horovod-1.dist-info", nil) {
		t.Error("a wheel that promises no package may hold any")
	}
}
