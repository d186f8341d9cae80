package bench

import (
	"cmp"
	"fmt"

	"builder/internal/machine/curve"
	"builder/internal/machine/nccltests"
)

// wrong is the error of a sweep with meaningless numbers: wrong values, unchecked
// values, or an impossible speed.
type wrong struct{ error }

// accept returns the comparable rows of a sweep, or an error.
func (p Plan) accept(r nccltests.Report) ([]nccltests.Row, error) {
	if len(r.Devices) > 0 && len(r.Devices) != p.GPUs {
		return nil, fmt.Errorf("it ran on %d GPUs, %d were requested", len(r.Devices), p.GPUs)
	}
	if n := p.sizes(); len(r.Rows) != n {
		return nil, fmt.Errorf("it measured %d sizes, %d were requested: the largest may not fit into the memory of the GPUs", len(r.Rows), n)
	}
	var rows []nccltests.Row
	for _, row := range r.Rows {
		if row.Bytes == 0 {
			continue // all_gather and similar collectives round down: 8 bytes for 2 GPUs become 0
		}
		if len(rows) > 0 && row.Bytes <= rows[len(rows)-1].Bytes {
			return nil, fmt.Errorf("size %d comes after size %d", row.Bytes, rows[len(rows)-1].Bytes)
		}
		if err := p.acceptRow(r, row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if r.OutOfBounds != 0 {
		return nil, wrong{fmt.Errorf("%d passes had wrong values", r.OutOfBounds)}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("all sizes are too small to share among %d GPUs", p.GPUs)
	}
	return rows, nil
}

func (p Plan) acceptRow(r nccltests.Report, row nccltests.Row) error {
	if !row.OutOfPlace.Measured {
		return fmt.Errorf("%s: not measured out of place", curve.HumanSize(row.Bytes))
	}
	if r.Unchecked(row) {
		return wrong{fmt.Errorf("%s: the program did not check the values", curve.HumanSize(row.Bytes))}
	}
	for _, half := range []nccltests.Timing{row.OutOfPlace, row.InPlace} {
		switch {
		case !half.Measured:
		case half.Wrong != 0:
			return wrong{fmt.Errorf("%s: %d wrong values", curve.HumanSize(row.Bytes), half.Wrong)}
		case !plausibleTime(half.Microseconds) || !plausibleBW(half.BusBW):
			return fmt.Errorf("%s: implausible: %g us and %g GB/s", curve.HumanSize(row.Bytes), half.Microseconds, half.BusBW)
		case p.Limit > 0 && p.GPUs > 1 && half.BusBW > p.Limit:
			return wrong{fmt.Errorf("%s: %g GB/s exceed the %g GB/s of the links of these GPUs", curve.HumanSize(row.Bytes), half.BusBW, p.Limit)}
		}
	}
	return nil
}

// The limits keep every quotient finite and exclude NaN.
func plausibleTime(us float64) bool { return us > 1e-9 && us < 1e15 }

func plausibleBW(gbs float64) bool { return gbs >= 0 && gbs < 1e15 }

func sampleOf(round int, row nccltests.Row) Sample {
	s := Sample{Round: round, Time: row.OutOfPlace.Microseconds, BusBW: row.OutOfPlace.BusBW}
	if row.InPlace.Measured {
		s.InPlaceTime, s.InPlaceBW = row.InPlace.Microseconds, row.InPlace.BusBW
	}
	return s
}

// gpusOf returns the GPU names of a sweep, one for each rank.
func gpusOf(r nccltests.Report) []string {
	var names []string
	for _, d := range r.Devices {
		names = append(names, d.Name)
	}
	return names
}

// recognise records the version reported by a library. A different version than before
// is an error, because another library was loaded.
func (c *Contender) recognise(version string) error {
	if c.Version != "" && version != "" && version != c.Version {
		return fmt.Errorf("it reports version %s, and %s before: the loader took another library", version, c.Version)
	}
	c.Version = cmp.Or(c.Version, version)
	return nil
}
