package gate

import (
	"strings"
	"testing"

	"builder/test/kit/check"
)

func TestPathFault(t *testing.T) {
	const library = "horovod/torch/mpi_lib.so"
	for dir, says := range map[string]string{
		"$ORIGIN":                     "",
		"$ORIGIN/":                    "",
		"$ORIGIN/../.libs":            "",
		"$ORIGIN/../../torch/lib":     "",
		"${ORIGIN}/../../torch/lib":   "",
		"/usr/lib":                    "",
		"/usr/lib/":                   "",
		"/usr/lib64/openmpi/lib":      "",
		"/lib/x86_64-linux-gnu":       "",
		"/lib64":                      "",
		"/opt/rocm/lib":               "",
		"/usr/local/cuda/lib64":       "",
		"/usr/local/cuda/lib64/stubs": "libraries without code",
		"$ORIGIN/../../../..":         "",
		"${ORIGIN}/../../../../":      "",
		"$ORIGIN/../../../../..":      "out of site-packages",
		"$ORIGIN/../../../../openmpi": "out of site-packages",
		"$ORIGIN/../../../lib":        "out of site-packages",
		"$ORIGIN/../../..":            "out of site-packages",
		"$ORIGINAL/lib":               "relative to the directory",
		"${ORIGIN}al":                 "relative to the directory",
		"":                            "relative to the directory",
		"lib":                         "relative to the directory",
		"../lib":                      "relative to the directory",
		"/":                           "of the build machine",
		"/build/lib":                  "of the build machine",
		"/usr/library":                "of the build machine",
		"/usr/lib/../../build":        "of the build machine",
		"/opt/rocm-6.1.0/lib":         "of the build machine",
		"/usr/local/cuda-12/lib64":    "of the build machine",
		"/usr/lib/python3/dist-packages/torch/lib":       "of the build machine",
		"/usr/lib/python3.11/site-packages/torch/lib":    "of the build machine",
		"/opt/venv/lib/python3.11/site-packages/x/lib":   "of the build machine",
		"/tmp/pip-build-env-x/overlay/lib/libraries/lib": "of the build machine",
	} {
		got := pathFault(dir, library)
		check.That(t, (got == "") == (says == "") && strings.Contains(got, says), "%q: %q", dir, got)
	}
}
