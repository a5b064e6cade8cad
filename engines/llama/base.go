package llama

import (
	"context"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// base is a loaded model and what its roles share.
type base struct {
	engine   *engine
	model    capi.Model
	plan     plan
	settings settings
	dims     int
	abort    *capi.Abort
	contexts map[contextKey]*batchContext
	release  func() // of the file that the weights are mapped from, where it is a copy
}

// filePoolings are the library's numbers for the protocol's poolings.
var filePoolings = map[workerkit.Pooling]capi.PoolingType{
	workerkit.PoolingMean: capi.PoolingMean, workerkit.PoolingCLS: capi.PoolingCLS, workerkit.PoolingLast: capi.PoolingLast,
}

// finish compares the library's view of the model with the plan's, and makes the
// model of its role with its first context. It runs on the library's thread.
func (b *base) finish() (workerkit.Model, error) {
	lib := b.engine.lib
	b.contexts = map[contextKey]*batchContext{}
	b.dims = int(lib.ModelNEmbdOut(b.model))
	if n := int(lib.VocabNTokens(lib.ModelVocab(b.model))); n < b.plan.vocab {
		return nil, workerkit.ArtifactInvalid("llama.cpp reads %d tokens from a file with %d", n, b.plan.vocab)
	}
	if n := int(lib.ModelNCtxTrain(b.model)); n != b.plan.trained {
		return nil, workerkit.ArtifactInvalid("llama.cpp reads a context of %d from a file that says %d", n, b.plan.trained)
	}
	if !b.plan.encoder && lib.ModelHasEncoder(b.model) {
		return nil, workerkit.ArtifactInvalid("the architecture %q has an encoder and a decoder, which this worker cannot drive", b.plan.arch)
	}
	switch b.plan.role {
	case roleGenerator:
		return newGenerator(b)
	case roleReranker:
		return newReranker(b)
	}
	first := capi.PoolingMean // where the file names none, to see that the model computes
	if b.plan.pooling != "" {
		first = filePoolings[b.plan.pooling]
	}
	_, err := b.context(first, b.settings.batchTokens)
	return &embedder{base: b}, err
}

// Describe implements [workerkit.Model].
func (b *base) Describe() workerkit.Description {
	d := workerkit.Description{
		Arch:           b.plan.arch,
		MaxTokens:      b.plan.maxTokens,
		VocabSize:      b.plan.vocab,
		Poolings:       b.plan.poolings,
		DefaultPooling: b.plan.pooling,
	}
	if b.plan.role == roleEmbedder {
		d.Dims = b.dims
	}
	return d
}

// Close implements [workerkit.Model].
func (b *base) Close() error {
	b.engine.thread.do(b.free)
	return nil
}

func (b *base) free() {
	for _, c := range b.contexts {
		c.free()
	}
	b.contexts = nil
	if b.model != 0 {
		b.engine.lib.ModelFree(b.model)
		b.model = 0
	}
	b.releaseFile()
}

// releaseFile lets go of what the weights were loaded from.
func (b *base) releaseFile() {
	b.release()
	b.release = func() {}
}

// run calls f on the library's thread. While it runs, the end of ctx aborts what
// the library computes.
func (b *base) run(ctx context.Context, f func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.abort.Clear()
	stop := context.AfterFunc(ctx, b.abort.Set)
	defer stop()
	b.engine.thread.do(func() {
		b.engine.log.begin()
		err = f()
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// The return values of llama_encode and llama_decode.
const (
	rcOK          = 0
	rcNoSlot      = 1
	rcAborted     = 2
	rcAllocFailed = -2
)

// failure is the error of a return value that is not rcOK.
func (b *base) failure(rc int32) error {
	switch rc {
	case rcAborted:
		return context.Canceled
	case rcAllocFailed:
		return workerkit.OOM("llama.cpp could not allocate what this batch needs: %s", b.engine.log.reason())
	case rcNoSlot:
		return workerkit.EngineFailed("llama.cpp found no room in its KV cache for a batch that fits it")
	}
	return workerkit.EngineFailed("llama.cpp failed with %d: %s", rc, b.engine.log.reason())
}
