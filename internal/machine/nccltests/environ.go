package nccltests

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// environ returns the complete environment of a run. A variable of the user's environment
// cannot change a result unless the sweep sets it.
//
// HOME and NCCL_CONF_FILE keep ~/.nccl.conf out (src/misc/param.cc). Before 2.23.4 the
// library always reads that file in the home from passwd. /etc/nccl.conf belongs to the
// host and is used.
func environ(s Sweep, dir string) []string {
	env := map[string]string{
		"PATH":              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL":            "C",
		"HOME":              dir,
		"NCCL_CONF_FILE":    "/dev/null",
		"CUDA_DEVICE_ORDER": "PCI_BUS_ID", // the order of nvidia-smi
		"NCCL_DEBUG":        "INFO",
		"NCCL_DEBUG_SUBSYS": "INIT,ENV,NET",
		"NCCL_DEBUG_FILE":   filepath.Join(dir, "nccl.%h.%p.log"),
	}
	maps.Copy(env, s.Env)
	if own := env["LD_LIBRARY_PATH"]; s.Library != "" && own != "" {
		env["LD_LIBRARY_PATH"] = s.Library + ":" + own
	} else if s.Library != "" {
		env["LD_LIBRARY_PATH"] = s.Library
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// problem returns all errors of a sweep, or nil.
func (s Sweep) problem() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(s.Program != "", "the program is missing")
	check(!strings.Contains(s.Library, ":"), "%q holds a colon, which separates directories in LD_LIBRARY_PATH", s.Library)
	check(s.GPUs >= 1, "%d GPUs, want at least 1", s.GPUs)
	check(s.MinBytes >= 1 && s.MaxBytes >= s.MinBytes, "the sizes from %d to %d bytes are empty", s.MinBytes, s.MaxBytes)
	check(s.Factor >= 2, "the factor is %d, want at least 2", s.Factor)
	check(s.Timeout > 0, "the time limit is missing")
	for name, value := range s.Env {
		check(!strings.HasPrefix(name, "NCCL_DEBUG"), "%s is reserved for the runner", name)
		check(name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00"), "%q or its value is invalid in an environment", name)
	}
	return errors.Join(errs...)
}

// arguments returns the arguments of a process, which are the same for every release. It
// has one thread, and measures each size in 20 iterations after 5 to warm up.
func (s Sweep) arguments() []string {
	gpus := s.GPUs
	if len(s.Launcher) > 0 {
		gpus = 1
	}
	return []string{
		"-b", fmt.Sprint(s.MinBytes), "-e", fmt.Sprint(s.MaxBytes), "-f", fmt.Sprint(s.Factor),
		"-g", fmt.Sprint(gpus), "-n", "20", "-w", "5", "-c", "1",
	}
}
