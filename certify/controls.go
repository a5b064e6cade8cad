package certify

import (
	"context"
	"errors"
	"slices"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/protocol"
)

const (
	// controlRows is how many rows a control embeds: it is there to be wrong, and
	// what is wrong in all rows shows in these.
	controlRows = 64

	// controlBatch is the batch size of controls: any will do, a common one is
	// fast.
	controlBatch = 16
)

// subset is the rows that controls embed.
type subset struct {
	ids  []string
	rows [][]int32
	want [][]float32
	got  [][]float32 // what the worker gave for them, alone
}

func (m *embedding) controlRows() subset {
	var s subset
	for _, i := range spread(len(m.rows), controlRows) {
		s.ids = append(s.ids, m.ids[i])
		s.rows = append(s.rows, m.rows[i])
		s.want = append(s.want, m.want[i])
		s.got = append(s.got, m.alone[i])
	}
	return s
}

// controls does what is wrong on purpose and expects the gates to say so.
func (m *embedding) controls(ctx context.Context) error {
	c, s := m.suite.Controls, m.controlRows()
	cosine := func(got [][]float32) []gate.Check { return gate.Cosine(s.ids, got, s.want, *m.gates.Cosine) }
	if c.ShuffledRows {
		rotated := slices.Concat(s.got[1:], s.got[:1])
		m.caught(gate.NewControl("shuffled_rows", cosine(rotated)))
	}
	if c.SwappedPooling != nil {
		wrong := ask{c.SwappedPooling.Pooling, m.suite.Model.Normalize}
		if err := m.control(ctx, "swapped_pooling", s.rows, wrong, cosine); err != nil {
			return err
		}
	}
	if c.DroppedSpecialTokens {
		if err := m.control(ctx, "dropped_special_tokens", withoutEnds(s.rows), m.faithful(), cosine); err != nil {
			return err
		}
	}
	if c.NoNormalization {
		err := m.control(ctx, "no_normalization", s.rows, ask{m.suite.Model.Pooling, false}, func(got [][]float32) []gate.Check {
			return []gate.Check{gate.Norm(s.ids, got, m.gates.Norm.Tolerance)}
		})
		if err != nil {
			return err
		}
	}
	return m.wrongLoads(ctx, func(ctx context.Context, name string) ([]gate.Check, error) {
		m.begin("control: "+name, len(s.rows))
		got, err := m.embed(ctx, s.rows, inOrder(len(s.rows)), controlBatch, m.faithful())
		if err != nil {
			return nil, err
		}
		return cosine(got), nil
	})
}

// control embeds rows in a wrong way and holds them to the gate that must say so.
func (m *embedding) control(ctx context.Context, name string, rows [][]int32, wrong ask, judge func([][]float32) []gate.Check) error {
	m.begin("control: "+name, len(rows))
	got, err := m.embed(ctx, rows, inOrder(len(rows)), controlBatch, wrong)
	switch {
	case errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupported}):
		m.caught(gate.RefusedControl(name, err))
	case err != nil:
		return err
	default:
		m.caught(gate.NewControl(name, judge(got)))
	}
	return nil
}

// withoutEnds drops the first and the last id of each row that has more.
func withoutEnds(rows [][]int32) [][]int32 {
	out := make([][]int32, len(rows))
	for i, r := range rows {
		if out[i] = r; len(r) > 2 {
			out[i] = r[1 : len(r)-1]
		}
	}
	return out
}
