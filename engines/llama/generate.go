package llama

import (
	"context"
	"unicode/utf8"
	"unsafe"

	"github.com/synapse-module/workers/engines/internal/gbnf"
	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// generator continues prompts with the likeliest token each time.
type generator struct {
	*base
	ctx    capi.Context
	vocab  *vocabulary
	batch  int // tokens of a prompt computed at once
	tokens []int32
}

func newGenerator(b *base) (workerkit.Model, error) {
	if err := workerkit.CheckMemory(b.plan.contextBytes(b.settings, min(b.settings.batchTokens, b.plan.maxTokens), 1), "the KV cache of this model"); err != nil {
		return nil, err
	}
	g := &generator{base: b, batch: min(b.settings.batchTokens, b.plan.maxTokens)}
	p := b.contextParams()
	p.NCtx = uint32(b.plan.maxTokens)
	p.NBatch, p.NUbatch, p.NSeqMax = uint32(g.batch), uint32(g.batch), 1
	p.NOutputsMax = 1 // only the last token's logits are asked for
	ctx, err := b.newContext(p)
	if err != nil {
		return nil, err
	}
	g.ctx = ctx
	if b.engine.lib.GetMemory(ctx) == 0 {
		b.engine.lib.ContextFree(ctx)
		return nil, workerkit.ArtifactInvalid("the architecture %q declares no pooling and has no cache to generate with: this worker cannot drive it", b.plan.arch)
	}
	g.vocab = newVocabulary(b.engine.lib, b.model, b.plan.vocab)
	return g, nil
}

// Describe implements [workerkit.Model].
func (g *generator) Describe() workerkit.Description {
	d := g.base.Describe()
	d.MaxTokens-- // a prompt that fills the context leaves no place for a token
	d.Grammar = true
	return d
}

// Close implements [workerkit.Model].
func (g *generator) Close() error {
	g.engine.thread.do(func() {
		g.engine.lib.ContextFree(g.ctx)
		g.free()
	})
	return nil
}

// Generate implements [workerkit.Generator].
func (g *generator) Generate(ctx context.Context, prompt []int32, o workerkit.GenerateOptions) (out workerkit.Generation, err error) {
	var c *constraint
	if o.Grammar != "" {
		grammar, err := gbnf.ParseAny(o.Grammar)
		if err != nil {
			return out, workerkit.RequestInvalid("%v", err)
		}
		if c, err = newConstraint(grammar); err != nil {
			return out, workerkit.RequestInvalid("%v", err)
		}
		if c.state.Complete() {
			return workerkit.Generation{Finish: protocol.FinishGrammar}, nil
		}
	}
	err = g.run(ctx, func() error {
		out, err = g.generate(ctx, prompt, o.MaxTokens, c)
		return err
	})
	return out, err
}

func (g *generator) generate(ctx context.Context, prompt []int32, limit int, c *constraint) (out workerkit.Generation, err error) {
	lib := g.engine.lib
	lib.MemoryClear(lib.GetMemory(g.ctx), false)
	g.tokens = append(g.tokens[:0], prompt...) // C reads our own copy
	for rest := g.tokens; len(rest) > 0; {
		n := min(len(rest), g.batch)
		if err := g.decode(rest[:n]); err != nil {
			return out, err
		}
		rest = rest[n:]
	}
	var text []byte
	for used := len(prompt); ; used++ {
		token, err := g.next(c, text)
		if err != nil {
			return out, err
		}
		out.NGen++
		if g.vocab.ends(token) {
			out.Finish = protocol.FinishStop
			break
		}
		text = append(text, g.vocab.piece(token)...)
		if c != nil && c.state.Complete() {
			out.Finish = protocol.FinishGrammar
			break
		}
		if out.NGen == limit || used == g.plan.maxTokens {
			out.Finish = protocol.FinishLength
			break
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		g.tokens[0] = token
		if err := g.decode(g.tokens[:1]); err != nil {
			return out, err
		}
	}
	out.Text, err = whole(text)
	return out, err
}

// decode adds tokens of the one sequence to the context; positions go on by
// themselves.
func (g *generator) decode(tokens []int32) error {
	if rc := g.engine.lib.Decode(g.ctx, capi.Batch{NTokens: int32(len(tokens)), Token: unsafe.SliceData(tokens)}); rc != rcOK {
		return g.failure(rc)
	}
	return nil
}

// next is the likeliest token, among those that the constraint admits.
func (g *generator) next(c *constraint, text []byte) (int32, error) {
	p := g.engine.lib.GetLogitsIth(g.ctx, -1)
	if p == nil {
		return 0, workerkit.EngineFailed("llama.cpp has no logits after a batch: %s", g.engine.log.reason())
	}
	logits := unsafe.Slice(p, g.plan.vocab)
	best := argmax(logits)
	if best < 0 {
		return 0, workerkit.EngineFailed("no token has a finite logit: the artifact or the engine's arithmetic is at fault")
	}
	if c == nil {
		return best, nil
	}
	token, err := c.choose(best, logits, g.vocab)
	if err != nil {
		return 0, workerkit.RequestInvalid("%v", err)
	}
	if token < 0 {
		return 0, workerkit.RequestInvalid("the grammar cannot be satisfied with this model's tokens: none may follow %.200q, and it may not end there", text)
	}
	return token, nil
}

// argmax is the first of the largest values; -1 where none is over -Inf.
func argmax(values []float32) int32 {
	best := int32(-1)
	var most float32
	for i, v := range values {
		if v > most || best < 0 && v == v && v > negativeInf {
			best, most = int32(i), v
		}
	}
	return best
}

// whole is the text without the beginning of a character at its end, which a
// further token would have completed.
func whole(text []byte) (string, error) {
	for cut := range min(utf8.UTFMax, len(text)+1) {
		if at := len(text) - cut; utf8.Valid(text[:at]) && (cut == 0 || !utf8.FullRune(text[at:])) {
			return string(text[:at]), nil
		}
	}
	return "", workerkit.EngineFailed("the model generated bytes that are no UTF-8: %.200q", text)
}
