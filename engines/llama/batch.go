package llama

import (
	"unsafe"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// maxSequences is how many rows one batch may have. More gain nothing: a row of
// few tokens costs as much as its tokens.
const maxSequences = 64

// flashTile is the number of tokens from which llama.cpp's fused attention
// computes in f32 on a CPU (GGML_FA_TILE_Q). Below, it sums in f16, and a row alone
// would differ from the same row in a batch by 2e-4.
const flashTile = 64

// contextKey tells a model's contexts apart. short is for batches of fewer than
// flashTile tokens, computed without fused attention.
type contextKey struct {
	pooling capi.PoolingType
	short   bool
}

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

// context returns a context of the pooling for a batch of need tokens. The
// first is for batch_tokens; one row that is longer replaces it by one that holds it,
// so a model whose rows can be long takes the memory for long rows when one comes.
// It runs on the library's thread.
func (b *base) context(pooling capi.PoolingType, need int) (*batchContext, error) {
	key := contextKey{pooling, b.plan.encoder && b.settings.flash == flashModes["auto"] && need < flashTile}
	c := b.contexts[key]
	if c != nil && c.most >= need {
		return c, nil
	}
	most := b.settings.batchTokens
	if key.short {
		most = flashTile
	}
	for most < need {
		most *= 2
	}
	most = min(most, max(need, b.settings.batchTokens, b.plan.maxTokens))
	// What every row of the batch is told apart by is a mask over all pairs of
	// tokens, so rows shorter than a batch may still share it.
	if err := workerkit.CheckMemory(b.plan.contextBytes(b.settings, most, most), "computing rows of this length"); err != nil {
		return nil, err
	}
	if c != nil {
		delete(b.contexts, key)
		c.free()
	}
	p := b.contextParams()
	p.PoolingType = pooling
	if key.short {
		p.FlashAttnType = flashModes["off"]
	}
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
	b.contexts[key] = c
	return c, nil
}

func (b *base) contextParams() capi.ContextParams {
	p := b.engine.lib.ContextDefaultParams()
	p.NThreads, p.NThreadsBatch = b.settings.threads, b.settings.threads
	p.FlashAttnType = b.settings.flash
	p.TypeK, p.TypeV = kvTypes[b.settings.kvType].id, kvTypes[b.settings.kvType].id
	b.abort.Attach(&p)
	if b.plan.whole {
		p.AttentionType = capi.AttentionWhole
	}
	if b.settings.gelu == geluErf || b.settings.gelu == geluAuto && erfGELU[b.plan.arch] {
		capi.ExactGELU(&p)
	}
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
	*keep = (*keep)[:0]
	copied := 0
	for len(rows) > 0 {
		n, tokens := b.pack(rows)
		c, err := b.context(pooling, tokens)
		if err != nil {
			return nil, err
		}
		c.fill(rows[:n])
		if err := c.compute(tokens); err != nil {
			return nil, err
		}
		rows = rows[n:]
		for i := range n {
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

// pack is how many of the rows make the next batch, always one, and their
// tokens.
func (b *base) pack(rows [][]int32) (n, tokens int) {
	for _, row := range rows {
		if n > 0 && (tokens+len(row) > b.settings.batchTokens || n == maxSequences) {
			break
		}
		n, tokens = n+1, tokens+len(row)
	}
	return n, tokens
}

// fill puts rows that pack into the batch.
func (c *batchContext) fill(rows [][]int32) {
	n := 0
	for k, row := range rows {
		for i, id := range row {
			c.tokens[n], c.positions[n], c.id[n] = id, int32(i), int32(k)
			n++
		}
	}
	c.rows = len(rows)
}

// vector is the pooled vector of a row of the last batch: the library's memory.
func (c *batchContext) vector(row, width int) ([]float32, error) {
	p := c.base.engine.lib.GetEmbeddingsSeq(c.ctx, int32(row))
	if p == nil {
		return nil, workerkit.EngineFailed("llama.cpp has no vector for row %d of %d in its batch", row, c.rows)
	}
	return unsafe.Slice(p, width), nil
}
