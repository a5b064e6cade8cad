package llama

import (
	"unsafe"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// maxSequences is how many rows one batch may have. More gain nothing: a row of
// few tokens costs as much as its tokens.
const maxSequences = 64

// batchContext is a llama_context with one pooling, and the batch that is filled
// for it. The arrays are the batch's own memory, so C reads them in place.
type batchContext struct {
	base   *base
	ctx    capi.Context
	cached bool // it has a KV cache
	most   int  // tokens of a batch

	rows                        int
	tokens, positions, nSeq, id []int32
	idPtr                       []*int32
	output                      []int8
}

// context returns a context of the pooling whose batches hold rows of need
// tokens. The first is for batch_tokens; one row that is longer replaces it by
// one that holds it, so a model whose rows can be long takes the memory for long
// rows when one comes. It runs on the library's thread.
func (b *base) context(pooling capi.PoolingType, need int) (*batchContext, error) {
	c := b.contexts[pooling]
	if c != nil && c.most >= need {
		return c, nil
	}
	most := min(b.settings.batchTokens, b.plan.maxTokens)
	for most < need {
		most = min(2*most, b.plan.maxTokens)
	}
	// What every row of the batch is told apart by is a mask over all pairs of
	// tokens, so rows shorter than a batch may still share it.
	if err := workerkit.CheckMemory(b.plan.contextBytes(b.settings, most, most), "computing rows of this length"); err != nil {
		return nil, err
	}
	if c != nil {
		delete(b.contexts, pooling)
		c.free()
	}
	p := b.contextParams()
	p.PoolingType = pooling
	p.Embeddings = true
	p.NBatch, p.NUbatch, p.NSeqMax = uint32(most), uint32(most), min(maxSequences, uint32(most))
	// One cache for all rows: divided among them, each would get a fraction.
	p.NCtx, p.KVUnified = uint32(most), true
	ctx, err := b.newContext(p)
	if err != nil {
		return nil, err
	}
	c = newBatchContext(b, ctx, most)
	if got := b.engine.lib.NUbatch(ctx); int(got) < most || b.engine.lib.GetPoolingType(ctx) != pooling {
		c.free()
		return nil, workerkit.EngineFailed("llama.cpp made a context for %d tokens, asked for were %d", got, most)
	}
	b.contexts[pooling] = c
	return c, nil
}

func (b *base) contextParams() capi.ContextParams {
	p := b.engine.lib.ContextDefaultParams()
	p.NThreads, p.NThreadsBatch = b.settings.threads, b.settings.threads
	p.FlashAttnType = b.settings.flash
	p.TypeK, p.TypeV = kvTypes[b.settings.kvType].id, kvTypes[b.settings.kvType].id
	b.abort.Attach(&p)
	return p
}

func (b *base) newContext(p capi.ContextParams) (capi.Context, error) {
	b.engine.log.begin()
	ctx := b.engine.lib.ContextInit(b.model, p)
	if ctx == 0 {
		return 0, workerkit.EngineFailed("llama.cpp made no context for this model: %s", b.engine.log.reason())
	}
	return ctx, nil
}

func newBatchContext(b *base, ctx capi.Context, most int) *batchContext {
	c := &batchContext{
		base: b, ctx: ctx, most: most, cached: b.engine.lib.GetMemory(ctx) != 0,
		tokens: make([]int32, most), positions: make([]int32, most), nSeq: make([]int32, most),
		id: make([]int32, most), idPtr: make([]*int32, most), output: make([]int8, most),
	}
	for i := range most {
		c.nSeq[i], c.idPtr[i], c.output[i] = 1, &c.id[i], 1
	}
	return c
}

func (c *batchContext) free() {
	c.base.engine.lib.ContextFree(c.ctx)
	c.ctx = 0
}

// compute runs the first n tokens that were filled in, of rows that were told
// apart by their ids.
func (c *batchContext) compute(n int) error {
	lib := c.base.engine.lib
	batch := capi.Batch{
		NTokens: int32(n),
		Token:   unsafe.SliceData(c.tokens), Pos: unsafe.SliceData(c.positions),
		NSeqID: unsafe.SliceData(c.nSeq), SeqID: unsafe.SliceData(c.idPtr), Logits: unsafe.SliceData(c.output),
	}
	run := lib.Encode
	if c.cached {
		lib.MemoryClear(lib.GetMemory(c.ctx), false) // no row may see one of an earlier batch
		run = lib.Decode
	}
	if rc := run(c.ctx, batch); rc != rcOK {
		return c.base.failure(rc)
	}
	return nil
}

// pooled computes every row's pooled vector of width values, in order. The rows
// are packed as they come, up to batch_tokens together. All vectors but those of
// the last batch are copied to keep, since each batch frees the one before.
func (b *base) pooled(pooling capi.PoolingType, rows [][]int32, width int, keep *[]float32, out [][]float32) ([][]float32, error) {
	longest := 0
	for _, row := range rows {
		longest = max(longest, len(row))
	}
	c, err := b.context(pooling, longest)
	if err != nil {
		return nil, err
	}
	*keep = (*keep)[:0]
	copied := 0
	for len(rows) > 0 {
		n := c.fill(rows, min(b.settings.batchTokens, c.most))
		if err := c.compute(n); err != nil {
			return nil, err
		}
		rows = rows[c.rows:]
		for i := range c.rows {
			vector, err := c.vector(i, width)
			if err != nil {
				return nil, err
			}
			if len(rows) > 0 {
				*keep = append(*keep, vector...)
				vector = nil
				copied++
			}
			out = append(out, vector)
		}
	}
	for i := range copied { // only now: keep does not move any more
		out[i] = (*keep)[i*width : (i+1)*width]
	}
	return out, nil
}

// fill puts as many of the rows into the batch as fit budget tokens, but always
// one, and returns the number of tokens.
func (c *batchContext) fill(rows [][]int32, budget int) (n int) {
	c.rows = 0
	for _, row := range rows {
		if c.rows > 0 && (n+len(row) > budget || c.rows == min(maxSequences, c.most)) {
			break
		}
		for i, id := range row {
			c.tokens[n+i], c.positions[n+i], c.id[n+i] = id, int32(i), int32(c.rows)
		}
		n += len(row)
		c.rows++
	}
	return n
}

// vector is the pooled vector of a row of the last batch: the library's memory.
func (c *batchContext) vector(row, width int) ([]float32, error) {
	p := c.base.engine.lib.GetEmbeddingsSeq(c.ctx, int32(row))
	if p == nil {
		return nil, workerkit.EngineFailed("llama.cpp has no vector for row %d of %d in its batch", row, c.rows)
	}
	return unsafe.Slice(p, width), nil
}
