package pipelines

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// killMarked kills the client program of a session. The SDK does not expose its
// process, so killMarked finds it by the session's mark in the environment of this
// process's children.
func killMarked(mark string) {
	wanted := []byte(markName + "=" + mark)
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for field := range bytes.FieldsSeq(children) {
			pid, err := strconv.Atoi(string(field))
			if err != nil {
				continue
			}
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, wanted) }) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
