package llama

import (
	"context"
	"unsafe"

	"github.com/synapse-module/workers/engines/internal/greedy"
	"github.com/synapse-module/workers/engines/llama/internal/capi"
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
	err = g.run(ctx, func() error {
		g.engine.lib.MemoryClear(g.engine.lib.GetMemory(g.ctx), false)
		out, err = greedy.Generate(ctx, g, g.vocab, prompt, g.plan.maxTokens, o)
		return err
	})
	return out, err
}

// Feed implements [greedy.Model]. It runs on the engine's thread.
func (g *generator) Feed(ctx context.Context, tokens []int32) ([]float32, error) {
	g.tokens = append(g.tokens[:0], tokens...) // C reads our own copy
	for rest := g.tokens; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(len(rest), g.batch)
		// Positions go on by themselves.
		if rc := g.engine.lib.Decode(g.ctx, capi.Batch{NTokens: int32(n), Token: unsafe.SliceData(rest)}); rc != rcOK {
			return nil, g.failure(rc)
		}
		rest = rest[n:]
	}
	p := g.engine.lib.GetLogitsIth(g.ctx, -1)
	if p == nil {
		return nil, workerkit.EngineFailed("llama.cpp has no logits after a batch: %s", g.engine.log.reason())
	}
	return unsafe.Slice(p, g.plan.vocab), nil
}
