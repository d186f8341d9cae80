// Package nccltests runs the programs of nccl-tests and rccl-tests on the GPUs of this
// host and parses the table that they print, of releases since 2.13.
//
// The output is not trusted. Without rows, truncated, or with invalid numbers, it is an
// error and never a shorter report. The programs exit with status 0 and print "OK" even
// if they measured nothing. Package device judges the results.
package nccltests

import (
	"fmt"
	"time"

	"builder/internal/machine/guest"
)

// A Report is the output of one run of a program.
type Report struct {
	Program string   `json:"program"` // all_reduce_perf
	Library int      `json:"library"` // NCCL's version number of the loaded library, 22907; 0 if the release does not print it
	Devices []Device `json:"devices"` // one for each rank
	Rows    []Row    `json:"rows"`    // in the order of the run; at least one
	// OutOfBounds is the number of passes with a wrong value, from the footer.
	OutOfBounds int `json:"out_of_bounds"`
}

// A Device is the GPU of one rank.
type Device struct {
	Host  string `json:"host"`
	Name  string `json:"name"`   // NVIDIA H200
	BusID string `json:"bus_id"` // 0000:8d:00.0, empty if the release does not print it
}

// A Row is one size of a sweep.
type Row struct {
	Bytes      int64  `json:"bytes"`
	Type       string `json:"type"` // float
	OutOfPlace Timing `json:"out_of_place"`
	InPlace    Timing `json:"in_place"`
}

// A Timing is one of the two halves of a row.
type Timing struct {
	BusBW   float64 `json:"busbw"`   // GB/s, where 1 GB is 1e9 bytes
	Checked bool    `json:"checked"` // false if #wrong is N/A
	Wrong   int64   `json:"wrong"`   // elements
}

// A Sweep is a measurement to run.
type Sweep struct {
	Program  string            // path of the program, such as all_reduce_perf
	Library  string            // directory of the libnccl.so.2 or librccl.so.1 to load; "" means the loader's choice
	GPUs     int               // of this host, in one process; with a launcher the ranks, one GPU each
	Launcher []string          // command that starts the ranks, such as mpirun -np 16; empty for none
	Guest    guest.Guest       // runs the program, or the launcher
	Network  bool              // the program uses the network of this host
	MinBytes int64             // first size
	MaxBytes int64             // last size
	Factor   int               // ratio of successive sizes
	Env      map[string]string // additional variables; NCCL_DEBUG is set by Run
	Timeout  time.Duration     // then the process group is killed
}

// Measured is the outcome of a sweep. Log is the library's log with NCCL_DEBUG=INFO.
// Output is the output of the program.
type Measured struct {
	Report Report
	Log    string
	Output string
}

// VersionOf converts NCCL's version number: 22907 is 2.29.7. Before 2.9, 2804 is 2.8.4
// (NCCL_VERSION in nccl.h). Without a number it returns "".
func VersionOf(number int) string {
	switch {
	case number <= 0:
		return ""
	case number < 10000:
		return fmt.Sprintf("%d.%d.%d", number/1000, number/100%10, number%100)
	}
	return fmt.Sprintf("%d.%d.%d", number/10000, number/100%100, number%100)
}
