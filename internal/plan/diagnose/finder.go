package diagnose

// A finder finds which of many texts occur in a line. It makes one pass over the line,
// whatever the number of texts (Aho and Corasick, 1975).
type finder struct {
	class [256]uint8 // class of each byte; 0 for bytes that occur in no text
	width int32      // number of classes
	next  []int32    // next state by state and class; a state is the offset of its row
	hot   int32      // first state at which a text ends; all later ones do too
	ids   [][]int    // ids of the texts that end there, by (state-hot)/width
}

// node is a state during construction.
type node struct {
	next map[uint8]*node
	fail *node
	ids  []int
	at   int32
}

// newFinder returns a finder of texts by id.
func newFinder(texts map[int][]string) *finder {
	f := &finder{width: 1}
	root := &node{next: map[uint8]*node{}}
	for id, list := range texts {
		for _, text := range list {
			f.insert(root, text, id)
		}
	}
	nodes := link(root)
	f.number(nodes)
	f.fill(nodes)
	return f
}

func (f *finder) insert(n *node, text string, id int) {
	for _, b := range []byte(text) {
		if f.class[b] == 0 {
			f.class[b] = uint8(f.width) // below 256: valid UTF-8 does not use all byte values
			f.width++
		}
		c := f.class[b]
		if n.next[c] == nil {
			n.next[c] = &node{next: map[uint8]*node{}}
		}
		n = n.next[c]
	}
	n.ids = append(n.ids, id)
}

// link sets the fail link of each node: the node for the longest proper suffix of its
// text. It returns all nodes, shorter texts first.
func link(root *node) []*node {
	nodes := []*node{root}
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		for c, child := range n.next {
			child.fail = root
			for f := n.fail; f != nil; f = f.fail {
				if f.next[c] != nil {
					child.fail = f.next[c]
					break
				}
			}
			child.ids = append(child.ids, child.fail.ids...)
			nodes = append(nodes, child)
		}
	}
	return nodes
}

// number assigns a row to each node. Nodes at which a text ends come last, so find
// recognises them by one comparison.
func (f *finder) number(nodes []*node) {
	row := int32(0)
	for _, ends := range []bool{false, true} {
		if ends {
			f.hot = row
		}
		for _, n := range nodes {
			if (len(n.ids) > 0) == ends {
				n.at = row
				row += f.width
			}
		}
	}
}

func (f *finder) fill(nodes []*node) {
	f.next = make([]int32, int(f.width)*len(nodes))
	f.ids = make([][]int, len(nodes)-int(f.hot/f.width))
	for _, n := range nodes {
		for c := range uint8(f.width) {
			to := n
			for to.next[c] == nil && to.fail != nil {
				to = to.fail
			}
			if to.next[c] != nil {
				f.next[n.at+int32(c)] = to.next[c].at
			}
		}
		if n.at >= f.hot {
			f.ids[(n.at-f.hot)/f.width] = n.ids
		}
	}
}

// find visits the id of each occurrence of a text in the line.
func (f *finder) find(line []byte, visit func(id int)) {
	state := int32(0)
	for _, b := range line {
		state = f.next[state+int32(f.class[b])]
		if state >= f.hot {
			for _, id := range f.ids[(state-f.hot)/f.width] {
				visit(id)
			}
		}
	}
}
