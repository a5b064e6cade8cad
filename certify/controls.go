package certify

import (
	"context"
	"errors"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/protocol"
)

// controlBatch is the batch size of controls: they are there to be wrong, so any
// will do, and a common one is fast.
const controlBatch = 16

// controls does what is wrong on purpose and expects the gates to say so.
func (m *measurement) controls(ctx context.Context) error {
	if c := m.suite.Controls.SwappedPooling; c != nil {
		return m.control(ctx, "swapped_pooling", ask{c.Pooling, m.suite.Model.Normalize})
	}
	return nil
}

// control embeds all rows in a wrong way and holds them to the gates of quality.
func (m *measurement) control(ctx context.Context, name string, wrong ask) error {
	m.begin("control: "+name, len(m.rows))
	got, err := m.embed(ctx, m.rows, inOrder(len(m.rows)), controlBatch, wrong)
	switch {
	case errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupported}):
		m.result.Controls = append(m.result.Controls, gate.RefusedControl(name, err))
	case err != nil:
		return err
	default:
		m.result.Controls = append(m.result.Controls, gate.NewControl(name, gate.Cosine(m.ids, got, m.want, *m.gates.Cosine)))
	}
	return nil
}

// fatal says that an error is no answer of the worker.
func fatal(err error) bool {
	var refusal *protocol.Error
	return err != nil && !errors.As(err, &refusal)
}
