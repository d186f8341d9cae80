package nccltests

import "slices"

// notInPlace lists the programs that do not check their results in place, where
// the buffers of one rank overlap (reportErrors in their source).
var notInPlace = []string{"alltoall_perf", "alltoallv_perf", "sendrecv_perf"}

// Unchecked reports whether nobody looked at the values of a row, or at a half of
// it that its program is able to check.
func (r Report) Unchecked(row Row) bool {
	out, in := row.OutOfPlace, row.InPlace
	open := out.Measured && !out.Checked || in.Measured && !in.Checked && !slices.Contains(notInPlace, r.Program)
	return open || !out.Checked && !in.Checked
}
