package nccltests

import "slices"

// notInPlace lists the programs that do not check in-place results, because the buffers
// of a rank overlap (reportErrors in their source).
var notInPlace = []string{"alltoall_perf", "alltoallv_perf", "sendrecv_perf"}

// Unchecked reports whether the values of a row, or of a half its program can check,
// were not checked.
func (r Report) Unchecked(row Row) bool {
	return !row.OutOfPlace.Checked || !row.InPlace.Checked && !slices.Contains(notInPlace, r.Program)
}
