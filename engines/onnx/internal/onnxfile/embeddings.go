package onnxfile

import "math"

// maxChain bounds how far back an index is followed through the graph.
const maxChain = 64

// Rows returns how many rows the embedding table has that is looked up with the
// values of the graph's input, unchanged: the ids 0 to Rows-1 are in it. It
// returns 0 where there is no such table; of several the smallest counts.
func (m *Model) Rows(input string) int {
	rows := int64(0)
	for _, l := range m.lookups() {
		if m.verbatim(l.indices) == input && (rows == 0 || l.table[0] < rows) {
			rows = l.table[0]
		}
	}
	return int(rows)
}

// Width returns the length of a token's embedding in that table, or 0.
func (m *Model) Width(input string) int {
	for _, l := range m.lookups() {
		if m.verbatim(l.indices) == input {
			return int(l.table[1])
		}
	}
	return 0
}

// MaxPositions returns how many tokens the table of learned positions has room
// for, or 0 where the graph has no such table that it could find: positions may
// be computed (rotary, relative), and then no table bounds the length. ids and
// positions name the graph's inputs; positions may be empty.
//
// A table may begin at an offset: where positions count the tokens up from the
// padding id (RoBERTa), 514 rows are room for 512 tokens.
func (m *Model) MaxPositions(ids, positions string) int {
	limit := int64(math.MaxInt64)
	width := int64(m.Width(ids))
	for _, l := range m.lookups() {
		if l.position {
			limit = min(limit, l.table[0])
		} else if first, last, ok := m.counting(l.indices, positions, 0); ok {
			limit = min(limit, l.table[0]-first, last)
		}
	}
	for _, n := range m.Nodes {
		// The table may be cut to length itself instead of looked up.
		if n.Op != "Slice" || len(n.Inputs) < 3 {
			continue
		}
		dims := m.tableDims(n.Inputs[0])
		_, fixed := m.Tensors[n.Inputs[2]]
		if k := len(dims); k >= 2 && k <= 3 && !fixed && width > 0 && dims[k-1] == width {
			limit = min(limit, dims[k-2])
		}
	}
	if limit == math.MaxInt64 || limit < 1 {
		return 0
	}
	return int(limit)
}

// lookup is a row-wise look-up in a table: its dimensions, and what it is
// indexed with.
type lookup struct {
	table    []int64 // at least two
	indices  string
	position bool // by its operator's definition the table of positions
}

func (m *Model) lookups() []lookup {
	if m.tables != nil {
		return m.tables
	}
	found := []lookup{}
	add := func(table, indices string, position bool) {
		if dims := m.tableDims(table); len(dims) >= 2 && dims[0] > 0 && dims[1] > 0 {
			found = append(found, lookup{dims, indices, position})
		}
	}
	for _, n := range m.Nodes {
		switch {
		case n.Op == "Gather" && n.Ints["axis"] == 0 && len(n.Inputs) == 2,
			n.Op == "GatherBlockQuantized" && n.Ints["gather_axis"] == 0 && len(n.Inputs) >= 2:
			add(n.Inputs[0], n.Inputs[1], false)
		case n.Op == "EmbedLayerNormalization" && len(n.Inputs) >= 5:
			// Inputs: ids, segments, and the tables of words, positions, segments.
			add(n.Inputs[2], n.Inputs[0], false)
			add(n.Inputs[3], "", true)
			add(n.Inputs[4], n.Inputs[1], false)
		}
	}
	m.tables = found
	return found
}

// producer finds the node that makes a value.
func (m *Model) producer(name string) (Node, bool) {
	if m.producers == nil {
		m.producers = map[string]int{}
		for i, n := range m.Nodes {
			for _, out := range n.Outputs {
				m.producers[out] = i
			}
		}
	}
	i, ok := m.producers[name]
	if !ok || name == "" {
		return Node{}, false
	}
	return m.Nodes[i], true
}

// reshaping operators pass their first input's values on.
var reshaping = map[string]bool{
	"Cast": true, "Identity": true, "Reshape": true, "Unsqueeze": true, "Squeeze": true, "Flatten": true, "Expand": true,
}

// verbatim follows a value back through operators that do not change it.
func (m *Model) verbatim(name string) string {
	for range maxChain {
		n, ok := m.producer(name)
		if !ok || !reshaping[n.Op] || len(n.Inputs) == 0 {
			return name
		}
		name = n.Inputs[0]
	}
	return name
}

// tableDims is the shape of a table that may be stored quantised.
func (m *Model) tableDims(name string) []int64 {
	for range maxChain {
		if t, ok := m.Tensors[name]; ok {
			return t.Dims
		}
		n, ok := m.producer(name)
		if !ok || len(n.Inputs) == 0 || (n.Op != "DequantizeLinear" && n.Op != "Cast" && n.Op != "Identity") {
			return nil
		}
		name = n.Inputs[0]
	}
	return nil
}

// counting says whether a value counts up along the tokens of a row: from first
// on, and, where it is cut from a stored row of numbers, how many there are.
func (m *Model) counting(name, positions string, depth int) (first, last int64, ok bool) {
	if depth > maxChain {
		return 0, 0, false
	}
	name = m.verbatim(name)
	if name == positions && positions != "" {
		return 0, math.MaxInt64, true
	}
	if t, stored := m.Tensors[name]; stored {
		return m.countingTensor(t)
	}
	n, ok := m.producer(name)
	if !ok || len(n.Inputs) == 0 {
		return 0, 0, false
	}
	switch n.Op {
	case "CumSum": // of a mask
		return 1, math.MaxInt64, true
	case "Range":
		start, known := m.scalar(n.Inputs[0])
		return start, math.MaxInt64, known
	case "Slice":
		t, stored := m.Tensors[m.verbatim(n.Inputs[0])]
		if !stored {
			return 0, 0, false
		}
		return m.countingTensor(t)
	case "Add", "Sub", "Mul":
		if len(n.Inputs) != 2 {
			return 0, 0, false
		}
		for i, side := range n.Inputs {
			first, last, ok := m.counting(side, positions, depth+1)
			other, known := m.scalar(n.Inputs[1-i])
			switch {
			case !ok:
			case n.Op == "Add" && known:
				return first + other, last, true
			case n.Op == "Sub" && known && i == 0:
				return first - other, last, true
			case n.Op == "Mul" && !known: // by a mask
				return first, last, true
			}
		}
	}
	return 0, 0, false
}

// countingTensor recognises a stored row of numbers that count up by one.
func (m *Model) countingTensor(t Tensor) (first, last int64, ok bool) {
	if len(t.Ints) < 2 {
		return 0, 0, false
	}
	for i, v := range t.Ints {
		if v != t.Ints[0]+int64(i) {
			return 0, 0, false
		}
	}
	return t.Ints[0], int64(len(t.Ints)), true
}

// scalar is the value of a constant of one integer.
func (m *Model) scalar(name string) (int64, bool) {
	t, ok := m.Tensors[m.verbatim(name)]
	if !ok || len(t.Ints) != 1 {
		return 0, false
	}
	return t.Ints[0], true
}
