//go:build cgo

package onnx

import (
	"context"
	"errors"
	"math"
	"runtime"

	"github.com/x448/float16"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/internal/greedy"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// decoder is a loaded graph that generates. Its cache lives in two sets of
// buffers that change places with each call: what came out as present goes in as
// past, and no value is copied here.
type decoder struct {
	session *ort.DynamicAdvancedSession
	options *ort.RunOptions
	plan    decoderPlan
	desc    workerkit.Description

	past     int // tokens in the cache
	capacity int // tokens that the buffers hold
	side     int // the set that holds the past
	cache    [2][][]byte
	pins     runtime.Pinner

	numbers []numbers
	branch  []bool    // whether the cache holds anything, for graphs that ask
	raw     []byte    // logits as the graph gives them
	logits  []float32 // of the last token
	fixed   runtime.Pinner
}

func newDecoder(session *ort.DynamicAdvancedSession, p decoderPlan) (*decoder, error) {
	options, err := ort.NewRunOptions()
	if err != nil {
		return nil, loadError(err)
	}
	d := &decoder{
		session: session, options: options, plan: p,
		desc: workerkit.Description{
			Arch: p.arch, VocabSize: p.vocab, Grammar: true,
			MaxTokens: p.context - 1, // a prompt that fills the context leaves no place for a token
		},
		raw:    make([]byte, p.chunk*p.width()*elementBytes(p.logits.Type)),
		logits: make([]float32, p.vocab),
		branch: make([]bool, 1),
	}
	d.fixed.Pin(&d.raw[0])
	d.fixed.Pin(&d.branch[0])
	for _, in := range p.inputs {
		n := newNumbers(in.Type)
		n.grow(max(p.context, p.chunk), &d.fixed)
		d.numbers = append(d.numbers, n)
	}
	// One token shows whether the graph gives what its file says.
	err = d.reserve(1)
	if err == nil {
		_, err = d.Feed(context.Background(), []int32{0})
	}
	if err != nil {
		if !errors.Is(err, &protocol.Error{Code: protocol.CodeOOM}) {
			err = workerkit.ArtifactInvalid("the model fails on its first token: %v", err)
		}
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// elementBytes is the size of a float type.
func elementBytes(t onnxfile.Type) int {
	if t == onnxfile.Float {
		return 4
	}
	return 2
}

func (d *decoder) Describe() workerkit.Description { return d.desc }

func (d *decoder) release() error {
	d.pins.Unpin()
	d.fixed.Unpin()
	return d.options.Destroy()
}

func (d *decoder) Close() error {
	err := errors.Join(d.release(), d.session.Destroy())
	trim()
	return err
}

// Generate implements [workerkit.Generator].
func (d *decoder) Generate(ctx context.Context, prompt []int32, o workerkit.GenerateOptions) (workerkit.Generation, error) {
	if err := d.reserve(min(d.plan.context, len(prompt)+o.MaxTokens)); err != nil {
		return workerkit.Generation{}, err
	}
	return greedy.Generate(ctx, d, d.plan.words, prompt, d.plan.context, o)
}

// reserve empties the cache and makes room for tokens.
func (d *decoder) reserve(tokens int) error {
	d.past = 0
	if tokens <= d.capacity {
		return nil
	}
	tokens = min(d.plan.context, max(tokens, 2*d.capacity))
	element := elementBytes(d.plan.cacheType)
	perToken := 0
	for _, c := range d.plan.cache {
		perToken += int(c.heads*c.dims) * element
	}
	if err := workerkit.CheckMemory(uint64(2*perToken)*uint64(tokens), "the cache of this request"); err != nil {
		return err
	}
	d.pins.Unpin()
	for side := range d.cache {
		d.cache[side] = nil
		for _, c := range d.plan.cache {
			b := make([]byte, int(c.heads*c.dims)*element*tokens)
			d.pins.Pin(&b[0])
			d.cache[side] = append(d.cache[side], b)
		}
	}
	d.capacity = tokens
	return nil
}

// Feed implements [greedy.Model].
func (d *decoder) Feed(ctx context.Context, tokens []int32) (logits []float32, err error) {
	// The library gives a call up when its flag is set. The flag stays until it is
	// taken back, and that only helps when nobody is about to set it.
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = d.options.Terminate() // a call that goes on is ended by the check below
		close(set)
	})
	defer func() {
		if !stop() {
			<-set
			err = errors.Join(err, d.options.UnsetTerminate())
		}
	}()
	for len(tokens) > 0 {
		n := min(len(tokens), d.plan.chunk)
		err := d.step(tokens[:n])
		if ended := ctx.Err(); ended != nil {
			return nil, givenUp(ended)
		}
		if err != nil {
			return nil, runError(err)
		}
		tokens = tokens[n:]
	}
	return d.logits, nil
}

// step feeds tokens and moves the cache on.
func (d *decoder) step(tokens []int32) (err error) {
	n, p := len(tokens), &d.plan
	all := d.past + n
	var in, out []ort.Value
	defer func() {
		for _, v := range append(in, out...) {
			err = errors.Join(err, v.Destroy())
		}
	}()
	add := func(list *[]ort.Value, v ort.Value, err error) error {
		if err == nil {
			*list = append(*list, v)
		}
		return err
	}
	for i, input := range p.inputs {
		length := n
		switch input.role {
		case roleMask:
			length = all
			d.numbers[i].count(0, all, all, 1, 0)
		case rolePositions:
			d.numbers[i].count(0, n, n, d.past+p.firstPosition, 1)
		default:
			d.numbers[i].copy(0, n, tokens)
		}
		v, err := d.numbers[i].tensor(ort.NewShape(1, int64(length)))
		if err := add(&in, v, err); err != nil {
			return err
		}
	}
	if p.useCache {
		d.branch[0] = d.past > 0
		v, err := ort.NewTensor(ort.NewShape(1), d.branch)
		if err := add(&in, v, err); err != nil {
			return err
		}
	}
	v, err := floatTensor(d.raw, p.logits.Type, 1, int64(n), int64(p.width()))
	if err := add(&out, v, err); err != nil {
		return err
	}
	for i, c := range p.cache {
		past, err := floatTensor(d.cache[d.side][i], p.cacheType, 1, c.heads, int64(d.past), c.dims)
		if err := add(&in, past, err); err != nil {
			return err
		}
		present, err := floatTensor(d.cache[1-d.side][i], p.cacheType, 1, c.heads, int64(all), c.dims)
		if err := add(&out, present, err); err != nil {
			return err
		}
	}
	if err := d.session.RunWithOptions(in, out, d.options); err != nil {
		return err
	}
	d.side, d.past = 1-d.side, all
	d.readLogits(n)
	return nil
}

// floatTensor is a view of the first bytes of b, as many as the shape needs. The
// binding wants at least one where it needs none.
func floatTensor(b []byte, t onnxfile.Type, dims ...int64) (ort.Value, error) {
	s := ort.NewShape(dims...)
	size := max(1, int(s.FlattenedSize())*elementBytes(t))
	return ort.NewCustomDataTensor(s, b[:size], ort.TensorElementDataType(t))
}

// readLogits takes those of the last of n tokens.
func (d *decoder) readLogits(n int) {
	width, element := d.plan.width(), elementBytes(d.plan.logits.Type)
	last := d.raw[(n-1)*width*element:][:d.plan.vocab*element]
	switch d.plan.logits.Type {
	case onnxfile.Float16:
		for i, h := range valuesOf[uint16](last) {
			d.logits[i] = float16.Frombits(h).Float32()
		}
	case onnxfile.BFloat16:
		for i, h := range valuesOf[uint16](last) {
			d.logits[i] = math.Float32frombits(uint32(h) << 16)
		}
	default:
		copy(d.logits, valuesOf[float32](last))
	}
}
