package bench

import (
	"slices"
	"time"
)

// Schema is the version of the format of bench.json.
const Schema = 1

// Result is the outcome of a plan. Only the samples are measured. Spreads, ratios and
// findings are computed from them, again at every read of a file.
type Result struct {
	Schema      int          `json:"schema"`
	Builder     string       `json:"builder"` // version of builder
	Command     string       `json:"command"`
	Host        Host         `json:"host"`
	Started     time.Time    `json:"started"`
	Finished    time.Time    `json:"finished,omitzero"` // absent if builder was killed
	Stopped     string       `json:"stopped,omitempty"` // why the plan was not completed
	Conditions  Conditions   `json:"conditions"`
	Libraries   []Contender  `json:"libraries"` // at least one; the others are compared with the first
	Collectives []Collective `json:"collectives"`
}

// Host describes the machine in words.
type Host struct {
	GPUs   []string `json:"gpus"`   // NVIDIA H200, one for each GPU used
	Driver string   `json:"driver"` // 570.86.15
	Link   string   `json:"link"`   // NV18 between all
}

// Conditions are the settings of every sweep.
type Conditions struct {
	GPUs       int               `json:"gpus"`
	MinBytes   int64             `json:"min_bytes"`
	MaxBytes   int64             `json:"max_bytes"`
	Factor     int               `json:"factor"`
	Rounds     int               `json:"rounds"`
	Iterations int               `json:"iterations"`
	Warmup     int               `json:"warmup_iterations"`
	Tests      string            `json:"tests"` // version of nccl-tests, empty if the release does not report it
	Env        map[string]string `json:"env"`
}

// Contender is a library and its failure, if any.
type Contender struct {
	Label   string   `json:"label"`
	Path    string   `json:"path"`    // the file, its directory or its wheel
	SHA256  string   `json:"sha256"`  // digest of the file
	Version string   `json:"version"` // reported by the library
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is the reason why a library was not measured further.
type Failure struct {
	Round      int    `json:"round"` // 0 is the warm-up round
	Collective string `json:"collective"`
	Reason     string `json:"reason"`
	// Wrong means the numbers are meaningless: wrong values, unchecked values, or a
	// bandwidth above the capacity of the links. The library is not compared and has no
	// samples.
	Wrong bool `json:"wrong,omitempty"`
}

// Collective holds the sizes of one collective in ascending order.
type Collective struct {
	Name  string `json:"name"`
	Sizes []Size `json:"sizes"`
}

// Size holds the measurements at one size. Figures and ratios are in the order of the
// libraries. A library without samples is left out.
type Size struct {
	Bytes   int64    `json:"bytes"`
	Figures []Figure `json:"figures"`
	Ratios  []Ratio  `json:"ratios"`
}

// Figure holds the measurements of one library.
type Figure struct {
	Library      string   `json:"library"`
	Samples      []Sample `json:"samples"` // in order of rounds
	Microseconds Spread   `json:"us"`
	BusBW        Spread   `json:"busbw"` // GB/s
}

// Sample is one size of one sweep. Time and BusBW are out-of-place, which every
// collective measures. The in-place values are 0 if they were not measured.
type Sample struct {
	Round       int     `json:"round"`
	Time        float64 `json:"us"`
	BusBW       float64 `json:"busbw"`
	InPlaceTime float64 `json:"in_place_us"`
	InPlaceBW   float64 `json:"in_place_busbw"`
}

// Figure returns the measurements of a library.
func (s Size) Figure(library string) (Figure, bool) {
	i := slices.IndexFunc(s.Figures, func(f Figure) bool { return f.Library == library })
	if i < 0 {
		return Figure{}, false
	}
	return s.Figures[i], true
}

// Ratio returns the comparison of a library with the first.
func (s Size) Ratio(library string) (Ratio, bool) {
	i := slices.IndexFunc(s.Ratios, func(r Ratio) bool { return r.Library == library })
	if i < 0 {
		return Ratio{}, false
	}
	return s.Ratios[i], true
}
