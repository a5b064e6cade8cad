package workerkit

import (
	"context"

	"github.com/synapse-module/workers/protocol"
)

func (s *server) generate(ctx context.Context, r *request) (answer, error) {
	var q protocol.Generate
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	m, err := s.model(q.ModelRef)
	if err != nil {
		return answer{}, err
	}
	switch {
	case m.generator == nil:
		return answer{}, Unsupported("GENERATE: %s is no generating model", m.desc.Arch)
	case q.Grammar != "" && !m.desc.Grammar:
		return answer{}, Unsupported("GENERATE: this model enforces no grammar, and one is never ignored")
	case q.MaxTokens < 1:
		return answer{}, RequestInvalid("max_tokens is %d, at least 1 is needed", q.MaxTokens)
	}
	n := len(r.raw) / 4
	rows, err := s.splitRows(r.raw, m.desc, 1, func(int) int { return n }, func(int) string { return "the prompt" })
	if err != nil {
		return answer{}, err
	}
	g, err := m.generator.Generate(ctx, rows[0], GenerateOptions{MaxTokens: q.MaxTokens, Grammar: q.Grammar})
	if err != nil {
		return answer{}, err
	}
	return answer{message: protocol.Text{ReqID: q.ReqID, Text: g.Text, NPrompt: len(rows[0]), NGen: g.NGen, FinishReason: g.Finish}}, nil
}
