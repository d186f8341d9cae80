package show

import (
	"fmt"

	"builder/internal/app/judge"
	"builder/internal/gates/device"
	"builder/internal/view/term"
)

// Bench prints the speed of one library, or of two.
func Bench(out term.Printer, r judge.BenchReport) {
	header := []string{"collective", "size", r.Library + ", GB/s"}
	if r.Other != "" {
		header = append(header, r.Other+", GB/s", "ratio")
	}
	var rows [][]string
	for _, s := range r.Sizes {
		row := []string{s.Collective, device.SizeText(s.Bytes), fmt.Sprintf("%.2f", s.BusBW)}
		if r.Other != "" {
			row = append(row, fmt.Sprintf("%.2f", s.Other), fmt.Sprintf("%.2f", s.Ratio))
		}
		rows = append(rows, row)
	}
	out.Table(header, rows)
}
