// Package nccltests runs the programs of nccl-tests and rccl-tests on the GPUs
// of this host and reads what they print: every layout of the table that a
// release ever had, and the JSON of the later ones.
//
// What it reads is not trusted. Output without a row, cut off in the middle or
// with numbers that are none is an error, never a shorter report: those programs
// end with status 0 and "OK" when they have measured nothing. Whether what was
// measured is good says package gate of one artifact, package bench of several
// libraries.
package nccltests

import "time"

// A Report is what one program said about one run.
type Report struct {
	Program string   `json:"program"` // all_reduce_perf
	Version string   `json:"version"` // of nccl-tests, 2.17.6; empty where the release does not say
	Library int      `json:"library"` // NCCL's number of the library that was loaded, 22907; 0 where the release does not say
	Devices []Device `json:"devices"` // one for each rank
	Rows    []Row    `json:"rows"`    // by size, in the order of the run; at least one
	// OutOfBounds is how many passes had a wrong value, as the footer says. It is
	// all that a release before 2.13 says of wrong values.
	OutOfBounds int `json:"out_of_bounds"`
}

// A Device is the GPU of one rank.
type Device struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	Name  string `json:"name"`   // NVIDIA H200
	BusID string `json:"bus_id"` // 0000:8d:00.0, empty where the release does not say
}

// A Row is one size of a sweep.
type Row struct {
	Bytes      int64  `json:"bytes"`
	Count      int64  `json:"count"` // elements
	Type       string `json:"type"`  // float
	Op         string `json:"op"`    // sum; none where the collective has none
	Root       int    `json:"root"`  // -1 where the collective has none
	OutOfPlace Timing `json:"out_of_place"`
	InPlace    Timing `json:"in_place"`
}

// A Timing is one of the two halves of a row. Where the program does not measure
// it, as alltoall in place, Measured is false and the rest is zero.
type Timing struct {
	Measured     bool    `json:"measured"`
	Microseconds float64 `json:"us"`
	AlgBW        float64 `json:"algbw"`   // GB/s, 1e9 bytes
	BusBW        float64 `json:"busbw"`   // GB/s
	Checked      bool    `json:"checked"` // false: #wrong is N/A, nobody looked
	Wrong        int64   `json:"wrong"`   // elements; always 0 before 2.13, see Report.OutOfBounds
}

// A Sweep is what a program is asked to measure.
type Sweep struct {
	Program    string            // path of the program, such as all_reduce_perf
	Library    string            // directory whose libnccl.so.2 or librccl.so.1 is loaded; "" leaves it to the loader
	GPUs       int               // of this host, one thread each
	MinBytes   int64             // first size
	MaxBytes   int64             // last size
	Factor     int               // from one size to the next
	Iterations int               // timed, for each size
	Warmup     int               // not timed, for each size
	Env        map[string]string // beside what every run gets; NCCL_DEBUG is the runner's own
	Timeout    time.Duration     // the process group is killed after it
}

// Measured is what came of a sweep. Log is what the library said of itself with
// NCCL_DEBUG=INFO, Output what the program printed beside it.
type Measured struct {
	Report Report
	Log    string
	Output string
}
