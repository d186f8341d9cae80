package bench

import (
	"slices"
	"time"
)

// Schema is the number of the format of bench.json.
const Schema = 1

// Result is what came of a plan. Samples are what was measured; spreads, ratios
// and findings follow from them, and are made anew when a file is read.
type Result struct {
	Schema      int          `json:"schema"`
	Builder     string       `json:"builder"` // version of the tool
	Command     string       `json:"command"`
	Host        Host         `json:"host"`
	Started     time.Time    `json:"started"`
	Finished    time.Time    `json:"finished,omitzero"` // absent if it was killed
	Stopped     string       `json:"stopped,omitempty"` // why it ended before its plan
	Conditions  Conditions   `json:"conditions"`
	Libraries   []Contender  `json:"libraries"` // at least one; the first is what the others are compared with
	Collectives []Collective `json:"collectives"`
}

// Host is what is known of the machine, in words.
type Host struct {
	GPUs   []string `json:"gpus"`   // NVIDIA H200, one for each that took part
	Driver string   `json:"driver"` // 570.86.15
	Link   string   `json:"link"`   // NV18 between all
}

// Conditions are what held for every sweep.
type Conditions struct {
	GPUs       int               `json:"gpus"`
	MinBytes   int64             `json:"min_bytes"`
	MaxBytes   int64             `json:"max_bytes"`
	Factor     int               `json:"factor"`
	Rounds     int               `json:"rounds"`
	Iterations int               `json:"iterations"`
	Warmup     int               `json:"warmup_iterations"`
	Tests      string            `json:"tests"` // version of nccl-tests, empty where the release does not say
	Env        map[string]string `json:"env"`
}

// Contender is a library and what became of it.
type Contender struct {
	Label   string   `json:"label"`
	Path    string   `json:"path"`    // the file, or the directory or wheel that holds it
	SHA256  string   `json:"sha256"`  // of the file
	Version string   `json:"version"` // as the library itself says it
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is why a library was measured no further.
type Failure struct {
	Round      int    `json:"round"` // 0 is the warm-up
	Collective string `json:"collective"`
	Reason     string `json:"reason"`
	// Wrong says that its numbers mean nothing: wrong values, values that nobody
	// checked, or a bandwidth beyond the links. It is not compared, and has no samples.
	Wrong bool `json:"wrong,omitempty"`
}

// Collective holds the sizes of one, ascending.
type Collective struct {
	Name  string `json:"name"`
	Sizes []Size `json:"sizes"`
}

// Size holds what was measured at one size. Figures and ratios are in the order
// of the libraries; a library without samples is not among them.
type Size struct {
	Bytes   int64    `json:"bytes"`
	Figures []Figure `json:"figures"`
	Ratios  []Ratio  `json:"ratios"`
}

// Figure is what was measured of one library.
type Figure struct {
	Library      string   `json:"library"`
	Samples      []Sample `json:"samples"` // by round
	Microseconds Spread   `json:"us"`
	BusBW        Spread   `json:"busbw"` // GB/s
}

// Sample is one size of one sweep. Time and bandwidth are those of the
// out-of-place half, which every collective has; what the other half took is kept
// beside it, and 0 where it is not measured.
type Sample struct {
	Round       int     `json:"round"`
	Time        float64 `json:"us"`
	BusBW       float64 `json:"busbw"`
	InPlaceTime float64 `json:"in_place_us"`
	InPlaceBW   float64 `json:"in_place_busbw"`
}

// Figure returns what was measured of a library.
func (s Size) Figure(library string) (Figure, bool) {
	i := slices.IndexFunc(s.Figures, func(f Figure) bool { return f.Library == library })
	if i < 0 {
		return Figure{}, false
	}
	return s.Figures[i], true
}

// Ratio returns how a library compares with the first.
func (s Size) Ratio(library string) (Ratio, bool) {
	i := slices.IndexFunc(s.Ratios, func(r Ratio) bool { return r.Library == library })
	if i < 0 {
		return Ratio{}, false
	}
	return s.Ratios[i], true
}
