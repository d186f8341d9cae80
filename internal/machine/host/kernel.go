package host

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// Kernel returns the release of the running kernel.
func (h Host) Kernel() string { return h.Says("/proc/sys/kernel/osrelease") }

// options returns the configuration of the kernel, or "" if it is not available.
func (h Host) options() string {
	for _, file := range []string{"/boot/config-" + h.Kernel(), "/lib/modules/" + h.Kernel() + "/config"} {
		if text := h.Says(file); text != "" {
			return text
		}
	}
	packed, err := h.Read("/proc/config.gz")
	if err != nil {
		return ""
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// KernelOption reports whether the kernel was built with an option. known is false
// without a kernel configuration.
func (h Host) KernelOption(name string) (on, known bool) {
	config := "\n" + h.options()
	return strings.Contains(config, "\n"+name+"=y") || strings.Contains(config, "\n"+name+"=m"), len(config) > 1
}
