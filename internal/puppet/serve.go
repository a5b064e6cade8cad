//go:build linux || darwin

package puppet

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/synapse-module/workers/protocol"
)

// Dims is the length of a vector of every model of a serving puppet.
const Dims = 4

// Value is component j of the vector that a serving puppet gives for a row, and
// its score for a candidate is Value(row, 0).
func Value(row []int32, j int) float32 {
	var sum int32
	for _, id := range row {
		sum += id
	}
	return float32(sum) + float32(j)
}

// request reads one whole request.
func (p *puppet) request() {
	payload, err := p.in.ReadControl(nil)
	if errors.Is(err, io.EOF) {
		os.Exit(protocol.ExitOK)
	}
	p.must(err)
	p.header, err = protocol.Parse(payload)
	p.must(err)
	if p.header.RawFrames == 1 {
		raw, err := p.in.ReadRaw(nil)
		p.must(err)
		p.ids, err = protocol.View[int32](raw)
		p.must(err)
	}
}

// serve answers n requests like a sound worker, or all of them where n is 0.
func (p *puppet) serve(n int) {
	for i := 0; n == 0 || i < n; i++ {
		p.request()
		p.answer()
	}
}

func (p *puppet) answer() {
	id := p.header.ReqID
	switch p.header.Type {
	case protocol.TypeLoad:
		if p.crowded {
			p.message(protocol.Err{ReqID: id, Code: protocol.CodeOOM, Msg: "there is no room beside the other"})
			return
		}
		p.loads++
		p.message(protocol.Loaded{ReqID: id, ModelRef: fmt.Sprintf("m%d", p.loads), Dims: Dims})
	case protocol.TypeEmbedBatch:
		var q protocol.EmbedBatch
		p.must(p.header.Decode(&q))
		var out []float32
		for _, item := range q.Items {
			for j := range Dims {
				out = append(out, Value(p.ids[:item.NTokens], j))
			}
			p.ids = p.ids[item.NTokens:]
		}
		p.message(protocol.Vectors{ReqID: id, Dims: Dims, N: len(q.Items)}, protocol.Bytes(out))
	case protocol.TypeRerank:
		var q protocol.Rerank
		p.must(p.header.Decode(&q))
		p.ids = p.ids[q.QueryNTokens:]
		var out []float32
		for _, c := range q.Candidates {
			out = append(out, Value(p.ids[:c.NTokens], 0))
			p.ids = p.ids[c.NTokens:]
		}
		p.message(protocol.Scores{ReqID: id, N: len(q.Candidates)}, protocol.Bytes(out))
	case protocol.TypeGenerate:
		p.message(protocol.Text{ReqID: id, Text: fmt.Sprint(p.ids), NPrompt: len(p.ids), NGen: 1, FinishReason: protocol.FinishStop})
	case protocol.TypeUnload:
		p.message(protocol.Unloaded{ReqID: id})
	case protocol.TypePing:
		p.message(protocol.Pong{ReqID: id, RSSMB: 1, ModelsLoaded: p.loads})
	case protocol.TypeShutdown:
		os.Remove(p.place)
		if p.last != "" {
			p.die(p.last)
		}
		os.Exit(protocol.ExitOK)
	default:
		p.message(protocol.Err{ReqID: id, Code: protocol.CodeUnknownType, Msg: "a puppet does not know it"})
	}
}
