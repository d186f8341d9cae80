package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/machine/nccllog"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
)

// Collectives checks the results of the promised collectives at every size, the version
// of the library that ran, and the bandwidth, which must not exceed that of the links.
var Collectives = Check{1, checkCollectives}

func checkCollectives(ctx context.Context, d *Setup, e recipe.Expect) verdict.Verdict {
	var problems, seen []string
	tooFast := false
	for _, collective := range e.Collectives {
		m, err := d.run(ctx, d.sweep(collective, d.Library, minBytes, d.MaxBytes))
		if err != nil {
			return failedRun(collective, err)
		}
		library, otherwise, err := speaks(m, e.LibrarySays)
		if err != nil {
			return verdict.Unmeasured("%s: %v", collective, err)
		}
		fast := impossible(m.Report)
		tooFast = tooFast || len(fast) > 0
		found := slices.Concat(wrongValues(m.Report), atLeast(m.Report, d.GPUs), otherwise, fast)
		for _, problem := range found {
			problems = append(problems, collective+": "+problem)
		}
		seen = append(seen, collective+": "+summary(m.Report, library))
	}
	a := verdict.Judge(problems, seen)
	if tooFast {
		a = a.Because("the library lacks the kernel and returns its input unchanged, without an error, so the bandwidth exceeds that of the links: run the gate device-functions, and build again with a matching pattern in ONLY_FUNCS (two stars at its end)")
	}
	return a
}

// wrongValues describes the sizes with wrong or unchecked results.
func wrongValues(r nccltests.Report) []string {
	var problems []string
	for _, row := range r.Rows {
		if n := row.OutOfPlace.Wrong + row.InPlace.Wrong; n > 0 {
			problems = append(problems, fmt.Sprintf("%d wrong elements at %s of %s", n, SizeText(row.Bytes), row.Type))
		}
		if r.Unchecked(row) {
			problems = append(problems, fmt.Sprintf("the program did not check the results at %s", SizeText(row.Bytes)))
		}
	}
	if len(problems) == 0 && r.OutOfBounds > 0 {
		problems = append(problems, fmt.Sprintf("%d passes have values out of bounds", r.OutOfBounds))
	}
	if n := len(problems); n > 3 {
		problems = append(problems[:3], fmt.Sprintf("and %d more sizes", n-3))
	}
	return problems
}

// atLeast requires as many ranks as requested, each on its own GPU.
func atLeast(r nccltests.Report, gpus int) []string {
	var problems []string
	if len(r.Devices) != gpus {
		problems = append(problems, fmt.Sprintf("%d GPUs took part, %d were requested", len(r.Devices), gpus))
	}
	seen := map[string]bool{}
	for _, d := range r.Devices {
		at := d.Host + " " + d.BusID
		if d.BusID != "" && seen[at] {
			problems = append(problems, fmt.Sprintf("two ranks share the GPU %s of %s", d.BusID, d.Host))
		}
		seen[at] = true
	}
	return problems
}

// impossible describes the first bandwidth above the limit of the links. A single rank
// uses no link.
func impossible(r nccltests.Report) []string {
	if len(r.Devices) < 2 {
		return nil
	}
	var gpus []gpu.GPU
	for _, d := range r.Devices {
		gpus = append(gpus, gpu.GPU{Name: d.Name, BusID: d.BusID})
	}
	limit, known := gpu.Limit(gpus)
	for _, row := range r.Rows {
		busbw := max(row.OutOfPlace.BusBW, row.InPlace.BusBW)
		if busbw <= limit {
			continue
		}
		if known {
			return []string{fmt.Sprintf("%.0f GB/s at %s, but the links between %d of %s carry %.0f in both directions together", busbw, SizeText(row.Bytes), len(r.Devices), r.Devices[0].Name, limit)}
		}
		return []string{fmt.Sprintf("%.0f GB/s at %s, but no known GPU carries more than %.0f (%s is unknown)", busbw, SizeText(row.Bytes), limit, r.Devices[0].Name)}
	}
	return nil
}

// hosts lists the hosts of the ranks.
func hosts(r nccltests.Report) []string {
	var all []string
	for _, d := range r.Devices {
		all = append(all, d.Host)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// speaks names the library that ran, and compares the version printed by the library with the promise, such as
// 2.29.7+cuda13.0. If only the release number is known, it compares only that. The
// runner has already checked which file was loaded.
func speaks(m nccltests.Measured, promised string) (says string, problems []string, err error) {
	log, err := nccllog.Parse(strings.NewReader(m.Log))
	if err != nil {
		return "", nil, err
	}
	promised = strings.TrimPrefix(promised, "NCCL version ")
	number := nccltests.VersionOf(m.Report.Library)
	switch {
	case log.Version == "" && number == "":
		return "", nil, errors.New("neither the log nor the program names the library in use")
	case log.Version == "":
		release, _, _ := strings.Cut(promised, "+")
		return number, differs(number, release), nil
	case number != "" && log.Library == "NCCL" && !strings.HasPrefix(log.Version, number):
		return "", nil, fmt.Errorf("the log names version %s, the program %s", log.Version, number)
	}
	return log.Library + " " + log.Version, differs(log.Version, promised), nil
}

func differs(have, promised string) []string {
	if promised == "" || have == promised {
		return nil
	}
	return []string{fmt.Sprintf("the library reports %s, expected %s", have, promised)}
}

// summary describes a measurement. One GPU sends nothing, so it has no bus bandwidth.
func summary(r nccltests.Report, library string) string {
	best := 0.0
	for _, row := range r.Rows {
		best = max(best, row.OutOfPlace.BusBW, row.InPlace.BusBW)
	}
	name := "GPU"
	if len(r.Devices) > 0 {
		name = r.Devices[0].Name
	}
	if all := hosts(r); len(all) > 1 {
		name += " of " + strings.Join(all, ", ")
	}
	last := r.Rows[len(r.Rows)-1].Bytes
	rate := ""
	if len(r.Devices) != 1 {
		rate = fmt.Sprintf(", up to %.1f GB/s", best)
	}
	return fmt.Sprintf("%d sizes of %s to %s correct on %d x %s%s, by %s",
		len(r.Rows), SizeText(r.Rows[0].Bytes), SizeText(last), len(r.Devices), name, rate, library)
}
