package progress_test

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// screen is a small terminal. It wraps and scrolls, and a resize wraps its rows again
// as current terminals do.
type screen struct {
	mu            sync.Mutex
	width, height int
	rows          []row
	y, x          int
	hidden        bool
	frames        int
	raw           strings.Builder
}

type row struct {
	text    []rune
	wrapped bool // continues in the next row
}

func newScreen(width, height int) *screen {
	return &screen{width: width, height: height, rows: make([]row, 1)}
}

var control = regexp.MustCompile(`^\x1b\[(\??)(\d*)([A-Za-z])`)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	s.raw.Write(p)
	for text := string(p); text != ""; {
		if m := control.FindStringSubmatch(text); m != nil {
			s.control(m[1]+m[3], m[2])
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		s.put(r)
		text = text[len(string(r)):]
	}
	return len(p), nil
}

func (s *screen) put(r rune) {
	switch r {
	case '\r':
		s.x = 0
	case '\n':
		s.x = 0 // a tty turns \n into \r\n
		s.rows[s.y].wrapped = false
		s.down()
	default:
		if s.x == s.width {
			s.rows[s.y].wrapped = true
			s.x = 0
			s.down()
		}
		for len(s.rows[s.y].text) <= s.x {
			s.rows[s.y].text = append(s.rows[s.y].text, ' ')
		}
		s.rows[s.y].text[s.x] = r
		s.x++
	}
}

func (s *screen) down() {
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, row{})
	}
}

func (s *screen) control(what, number string) {
	n, _ := strconv.Atoi(number)
	switch what {
	case "A":
		s.y = max(s.y-n, len(s.rows)-s.height, 0)
	case "K":
		s.eraseLine()
	case "J":
		s.eraseLine()
		for i := s.y + 1; i < len(s.rows); i++ {
			s.rows[i] = row{}
		}
	case "?h", "?l":
		if n == 25 {
			s.hidden = what == "?l"
		}
	}
}

func (s *screen) eraseLine() {
	s.rows[s.y].text = s.rows[s.y].text[:min(s.x, len(s.rows[s.y].text))]
	s.rows[s.y].wrapped = false
}

// resize joins wrapped rows and wraps them again. The cursor is at the end of the text,
// where every frame leaves it.
func (s *screen) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.rows[:s.y+1]
	s.width, s.height, s.rows, s.y, s.x = width, height, make([]row, 1), 0, 0
	for i, r := range old {
		for _, c := range r.text {
			s.put(c)
		}
		if !r.wrapped && i < len(old)-1 {
			s.put('\n')
		}
	}
}

// String returns the text with its scrollback, without trailing blanks.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.rows {
		b.WriteString(strings.TrimRight(string(r.text), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

func (s *screen) cursorHidden() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hidden
}
