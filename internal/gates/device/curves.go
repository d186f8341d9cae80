package device

import (
	"cmp"

	"builder/internal/machine/curve"
	"builder/internal/machine/nccltests"
)

// halves returns the curves of one sweep, out of place and in place as measured.
func halves(collective, library string, r nccltests.Report) curve.Curves {
	var found curve.Curves
	for _, place := range []curve.Place{curve.OutOfPlace, curve.InPlace} {
		c := curve.Curve{Collective: collective, Library: library, Place: place, Rounds: 1, Points: points(r.Rows, place)}
		if len(c.Points) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// points returns the sizes of one half. The program rounds the smallest sizes down to a
// multiple of the ranks, so a size may be zero or repeat the size before; points leaves
// those out.
func points(rows []nccltests.Row, place curve.Place) []curve.Point {
	var found []curve.Point
	before := int64(0)
	for _, row := range rows {
		half := row.OutOfPlace
		if place == curve.InPlace {
			half = row.InPlace
		}
		if half.Measured && row.Bytes > before {
			found = append(found, curve.Point{Bytes: row.Bytes, BusBW: half.BusBW})
			before = row.Bytes
		}
	}
	return found
}

// sideBySide returns the curves of a comparison: the baseline, and the artifact under
// the version reported by the program.
func sideBySide(collective, baseline string, ours []nccltests.Measured, ratios []ratio) curve.Curves {
	_, place := halfOf(ours[0].Report.Rows[0])
	theirs := curve.Curve{Collective: collective, Library: baseline, Baseline: true, Place: place, Rounds: len(ours)}
	mine := curve.Curve{Collective: collective, Library: cmp.Or(ours[0].Version(), "the artifact"), Place: place, Rounds: len(ours)}
	for _, r := range ratios {
		theirs.Points = append(theirs.Points, curve.Point{Bytes: r.bytes, BusBW: r.theirs})
		mine.Points = append(mine.Points, curve.Point{Bytes: r.bytes, BusBW: r.ours})
	}
	return curve.Curves{theirs, mine}
}

// halfOf returns the half of a row used to compare libraries: out of place if measured.
func halfOf(row nccltests.Row) (nccltests.Timing, curve.Place) {
	if row.OutOfPlace.Measured {
		return row.OutOfPlace, curve.OutOfPlace
	}
	return row.InPlace, curve.InPlace
}
