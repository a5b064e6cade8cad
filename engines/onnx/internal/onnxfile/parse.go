package onnxfile

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

type parser struct {
	wire
	model Model
}

// message visits the fields of a length-delimited field that is a message.
func (p *parser) message(f field, visit func(field) error) error {
	if f.kind != protowire.BytesType {
		return fmt.Errorf("field %d is a number where a message is due", f.num)
	}
	return p.each(f.start, f.end, visit)
}

func (p *parser) readModel(size int64) error {
	return p.each(0, size, func(f field) (err error) {
		switch f.num {
		case 2:
			p.model.Producer, err = p.text(f)
		case 7:
			err = p.graph(f, 0)
		case 14:
			var key, value string
			if key, value, err = p.entry(f); err == nil {
				p.model.Metadata[key] = value
			}
		case 25:
			err = p.function(f)
		}
		return err
	})
}

// entry reads a StringStringEntryProto.
func (p *parser) entry(f field) (key, value string, err error) {
	err = p.message(f, func(f field) (err error) {
		switch f.num {
		case 1:
			key, err = p.text(f)
		case 2:
			value, err = p.text(f)
		}
		return err
	})
	return key, value, err
}

func (p *parser) function(f field) error {
	return p.message(f, func(f field) error {
		if f.num != 7 {
			return nil
		}
		_, err := p.node(f, 1)
		return err
	})
}

// graph reads a GraphProto. Of graphs within the main one only the operators
// and external files are kept.
func (p *parser) graph(f field, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("graphs are nested more than %d deep", maxDepth)
	}
	m := &p.model
	return p.message(f, func(f field) error {
		if max(len(m.Nodes), len(m.Tensors), len(m.Inputs), len(m.Outputs)) > maxNodes {
			return fmt.Errorf("the graph has more than %d nodes, weights, inputs or outputs", maxNodes)
		}
		switch f.num {
		case 1:
			n, err := p.node(f, depth)
			if err == nil && depth == 0 {
				m.Nodes = append(m.Nodes, n)
			}
			return err
		case 5:
			name, t, err := p.tensor(f)
			if err == nil && depth == 0 {
				m.Tensors[name] = t
			}
			return err
		case 11, 12:
			if depth > 0 {
				return nil
			}
			v, err := p.value(f)
			if err != nil {
				return err
			}
			if f.num == 11 {
				m.Inputs = append(m.Inputs, v)
			} else {
				m.Outputs = append(m.Outputs, v)
			}
		}
		return nil
	})
}

func (p *parser) node(f field, depth int) (Node, error) {
	var n Node
	var constant *Tensor
	err := p.message(f, func(f field) (err error) {
		var s string
		switch f.num {
		case 1, 2:
			if max(len(n.Inputs), len(n.Outputs)) >= maxNames {
				return fmt.Errorf("a node has more than %d inputs or outputs", maxNames)
			}
			if s, err = p.text(f); err != nil {
				return err
			}
			if f.num == 1 {
				n.Inputs = append(n.Inputs, s)
			} else {
				n.Outputs = append(n.Outputs, s)
			}
		case 4:
			n.Op, err = p.text(f)
		case 5:
			var t *Tensor
			if t, err = p.attribute(f, &n, depth); t != nil {
				constant = t
			}
		case 7:
			n.Domain, err = p.text(f)
		}
		return err
	})
	if err != nil {
		return n, err
	}
	if len(p.model.Ops) > maxNodes {
		return n, fmt.Errorf("the file has more than %d operators", maxNodes)
	}
	p.model.Ops[n.Op]++
	if n.Op == "Constant" && depth == 0 && len(n.Outputs) == 1 {
		if v, ok := n.Ints["value_int"]; ok {
			constant = &Tensor{Type: Int64, Ints: []int64{v}}
		}
		if constant != nil {
			p.model.Tensors[n.Outputs[0]] = *constant
		}
	}
	return n, nil
}

// attribute keeps a node's integers, returns the tensor of the attribute
// "value", and goes into the graphs that an attribute holds.
func (p *parser) attribute(f field, n *Node, depth int) (*Tensor, error) {
	var name string
	var value int64
	var isInt bool
	var constant *Tensor
	err := p.message(f, func(f field) (err error) {
		switch f.num {
		case 1:
			name, err = p.text(f)
		case 3:
			value, isInt = int64(f.value), true
		case 5:
			var t Tensor
			if _, t, err = p.tensor(f); err == nil {
				constant = &t
			}
		case 6, 11:
			err = p.graph(f, depth+1)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if isInt {
		if n.Ints == nil {
			n.Ints = map[string]int64{}
		}
		n.Ints[name] = value
	}
	if name != "value" {
		return nil, nil
	}
	return constant, nil
}

func (p *parser) tensor(f field) (name string, t Tensor, err error) {
	var raw field
	var outside External
	var external bool
	err = p.message(f, func(f field) (err error) {
		switch f.num {
		case 1:
			t.Dims, err = p.ints(f, t.Dims, maxDims)
		case 2:
			t.Type = Type(f.value)
		case 5, 7:
			if f.end-f.start <= maxContent && len(t.Ints) < maxContent {
				t.Ints, err = p.ints(f, t.Ints, maxContent)
			}
		case 8:
			name, err = p.text(f)
		case 9:
			raw = f
		case 13:
			var key, value string
			if key, value, err = p.entry(f); err == nil {
				err = outside.set(key, value)
			}
		case 14:
			external = f.value == 1
		}
		return err
	})
	if err != nil {
		return name, t, err
	}
	if external {
		p.model.External[outside.Location] = true
		t.External = &outside
		return name, t, nil
	}
	if size := raw.end - raw.start; t.countable() && size > 0 && size <= maxContent*8 {
		b, err := p.bytes(raw, maxContent*8)
		if err != nil {
			return name, t, err
		}
		t.decode(b)
	}
	return name, t, nil
}

// value reads a ValueInfoProto.
func (p *parser) value(f field) (Value, error) {
	var v Value
	err := p.message(f, func(f field) (err error) {
		switch f.num {
		case 1:
			v.Name, err = p.text(f)
		case 2:
			err = p.message(f, func(f field) error {
				if f.num != 1 {
					return nil
				}
				v.Tensor = true
				return p.tensorType(f, &v)
			})
		}
		return err
	})
	return v, err
}

func (p *parser) tensorType(f field, v *Value) error {
	return p.message(f, func(f field) error {
		switch f.num {
		case 1:
			v.Type = Type(f.value)
		case 2:
			v.Dims = []int64{}
			return p.message(f, func(f field) error {
				if f.num != 1 {
					return nil
				}
				if len(v.Dims) >= maxDims {
					return fmt.Errorf("%.64q has more than %d dimensions", v.Name, maxDims)
				}
				dim := int64(-1)
				err := p.message(f, func(f field) error {
					if f.num == 1 {
						dim = int64(f.value)
					}
					return nil
				})
				v.Dims = append(v.Dims, dim)
				return err
			})
		}
		return nil
	})
}
