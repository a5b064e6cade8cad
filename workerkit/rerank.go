package workerkit

import (
	"context"
	"fmt"
	"math"

	"github.com/synapse-module/workers/protocol"
)

func (s *server) rerank(ctx context.Context, r *request) (answer, error) {
	var q protocol.Rerank
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	m, err := s.model(q.ModelRef)
	if err != nil {
		return answer{}, err
	}
	if m.reranker == nil {
		return answer{}, Unsupported("RERANK: %s has no ranking head", m.desc.Arch)
	}
	name := func(i int) string { // the query is row 0
		if i == 0 {
			return "the query"
		}
		return fmt.Sprintf("candidates[%d]", i-1)
	}
	length := func(i int) int {
		if i == 0 {
			return q.QueryNTokens
		}
		return q.Candidates[i-1].NTokens
	}
	rows, err := s.splitRows(r.raw, m.desc, 1+len(q.Candidates), length, name)
	if err != nil {
		return answer{}, err
	}
	docs := rows[1:]
	if err := s.fits(len(docs), 1); err != nil {
		return answer{}, err
	}
	a := answer{message: protocol.Scores{ReqID: q.ReqID, N: len(docs)}, raw: [][]byte{}}
	if len(docs) == 0 {
		return a, nil
	}
	scores, err := m.reranker.Rerank(ctx, rows[0], docs)
	if err != nil {
		return answer{}, err
	}
	if len(scores) != len(docs) {
		return answer{}, EngineFailed("the engine gave %d scores for %d candidates", len(scores), len(docs))
	}
	for i, x := range scores {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return answer{}, EngineFailed("the score of %s is not finite: the artifact or the engine's arithmetic is at fault", name(i+1))
		}
	}
	s.parts = append(s.parts[:0], protocol.Bytes(scores))
	a.raw = s.parts
	return a, nil
}
