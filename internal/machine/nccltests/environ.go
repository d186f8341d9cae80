package nccltests

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
