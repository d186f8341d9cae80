package nccltests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// jsonReport is the file written with -J (src/util.cu, since 2.17.3). Its version is that
// of the format. Without MPI it lists only the first device.
type jsonReport struct {
	Args    []string   `json:"args"`
	Library int        `json:"nccl_version"`
	Config  config     `json:"config"`
	Results []result   `json:"results"`
	Bounds  *outcome   `json:"out_of_bounds"`
	Average *bandwidth `json:"average_bus_bandwidth"`
	// Misspelt is the key of releases up to 2.17.8.
	Misspelt *bandwidth `json:"average_bus_bandwidith"`
}

type config struct {
	Devices []struct {
		Rank int    `json:"rank"`
		Host string `json:"hostname"`
		Hex  string `json:"device_hex"`
		Info string `json:"device_info"`
	} `json:"devices"`
}

type outcome struct {
	Count *int   `json:"count"`
	Okay  string `json:"okay"`
}

type bandwidth struct {
	Okay string `json:"okay"`
}

type result struct {
	Size       *int64          `json:"size"`
	Count      *int64          `json:"count"`
	Type       string          `json:"type"`
	Op         string          `json:"redop"`
	Root       json.RawMessage `json:"root"` // a number in quotes, with blanks
	OutOfPlace *pass           `json:"out_of_place"`
	InPlace    *pass           `json:"in_place"`
}

// pass keeps the raw texts, because the programs write values that are not numbers as
// "nan" or as inf, which is invalid JSON.
type pass struct {
	Time  json.RawMessage `json:"time"`
	AlgBW json.RawMessage `json:"alg_bw"`
	BusBW json.RawMessage `json:"bus_bw"`
	Wrong json.RawMessage `json:"nwrong"`
}

func parseJSON(r io.Reader) (Report, error) {
	var doc jsonReport
	dec := json.NewDecoder(r)
	if err := dec.Decode(&doc); err != nil {
		return Report{}, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Report{}, errors.New("reading JSON: it holds more than one value")
	}
	report, err := doc.report()
	if err != nil {
		return Report{}, fmt.Errorf("reading JSON: %w", err)
	}
	return report, nil
}

// report requires the fields written at the end of a complete run. Closed brackets
// prove nothing: since 2.18.5 a failed run closes them too.
func (d jsonReport) report() (Report, error) {
	switch {
	case len(d.Results) == 0:
		return Report{}, errors.New("it has no results")
	case d.Bounds == nil || d.Bounds.Count == nil || d.Average == nil && d.Misspelt == nil:
		return Report{}, errors.New("it is truncated: out_of_bounds or average_bus_bandwidth is missing")
	case *d.Bounds.Count < 0 || (*d.Bounds.Count == 0) != (d.Bounds.Okay == "true"):
		return Report{}, errors.New("out_of_bounds contradicts itself")
	}
	r := Report{Library: d.Library, OutOfBounds: *d.Bounds.Count}
	if len(d.Args) > 0 {
		r.Program = path.Base(d.Args[0])
	}
	for _, dev := range d.Config.Devices {
		r.Devices = append(r.Devices, Device{Rank: dev.Rank, Host: dev.Host, Name: dev.Info, BusID: busID(dev.Hex)})
	}
	for i, result := range d.Results {
		row, err := result.row()
		if err != nil {
			return Report{}, fmt.Errorf("results[%d]: %w", i, err)
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

func (r result) row() (Row, error) {
	if r.Size == nil || r.Count == nil || *r.Size < 0 || *r.Count < 0 || r.OutOfPlace == nil && r.InPlace == nil {
		return Row{}, errors.New("size, count or the times are missing")
	}
	root, err := strconv.Atoi(strings.Trim(string(r.Root), `" `))
	if err != nil {
		return Row{}, fmt.Errorf("root: %w", err)
	}
	row := Row{Bytes: *r.Size, Count: *r.Count, Type: r.Type, Op: r.Op, Root: root}
	row.OutOfPlace, err = r.OutOfPlace.timing()
	if err == nil {
		row.InPlace, err = r.InPlace.timing()
	}
	return row, err
}

func (p *pass) timing() (Timing, error) {
	if p == nil {
		return Timing{}, nil
	}
	t := Timing{Measured: true}
	nothing := string(p.Wrong)
	if nothing == "null" {
		nothing = "N/A"
	}
	for _, v := range []struct{ name, text string }{
		{"time", string(p.Time)}, {"algbw", string(p.AlgBW)}, {"busbw", string(p.BusBW)}, {"#wrong", nothing},
	} {
		if err := t.set(v.name, v.text); err != nil {
			return Timing{}, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return t, nil
}
