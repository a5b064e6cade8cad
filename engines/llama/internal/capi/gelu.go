package capi

import (
	"errors"
	"sync"

	"github.com/ebitengine/purego"
)

// llama.cpp builds every GELU as its tanh approximation, whatever the model was
// trained with. Its backends know the form with the error function as well, and
// which of the two a node of the graph is says one integer in it. Before a graph is
// computed, llama.cpp shows each node to the context's evaluation callback; the
// one here writes the other integer.

// TensorHead is the beginning of struct ggml_tensor.
type TensorHead struct {
	Type     int32
	_        [4]byte
	Buffer   uintptr
	Ne       [4]int64
	Nb       [4]uint64
	Op       int32
	OpParams [16]int32
}

// initParams is struct ggml_init_params.
type initParams struct {
	MemSize   uint64
	MemBuffer uintptr
	NoAlloc   bool
	_         [7]byte
}

// operation is what a node computes, told from other nodes: its op, and which of
// that op's functions.
type operation struct{ op, function int32 }

func (t *TensorHead) operation() operation { return operation{t.Op, t.OpParams[0]} }

// geluForms are GELU's operations in this library: tanh's, and in their place the
// exact ones, alone and gated.
type geluForms struct{ gelu, geluErf, geglu, gegluErf operation }

// exact makes a node of the tanh form one of the error function.
func (f *geluForms) exact(t *TensorHead) {
	switch t.operation() {
	case f.gelu:
		t.OpParams[0] = f.geluErf.function
	case f.geglu:
		t.OpParams[0] = f.gegluErf.function
	}
}

// errTensorLayout is of a library whose nodes are not laid out as TensorHead.
var errTensorLayout = errors.New("its struct ggml_tensor is not laid out as this worker expects")

// readGELU has the library make a node of each form and reads off what they are,
// so that no number of an enum is assumed. That the integer written is the one
// that the library reads is asked from the library.
func (l *Library) readGELU() error {
	const room = 64 << 10 // five nodes of some 400 bytes, none with data
	ctx := l.GGMLInit(initParams{MemSize: room, NoAlloc: true})
	if ctx == 0 {
		return errors.New("ggml_init failed")
	}
	defer l.GGMLFree(ctx)
	in := l.NewTensor1D(ctx, int32(TypeF32), 2)
	gelu, geluErf, geglu, gegluErf := l.GELU(ctx, in), l.GELUErf(ctx, in), l.GEGLU(ctx, in), l.GEGLUErf(ctx, in)
	f := geluForms{gelu.operation(), geluErf.operation(), geglu.operation(), gegluErf.operation()}
	if in.Ne != [4]int64{2, 1, 1, 1} || f.gelu.op != f.geluErf.op || f.geglu.op != f.gegluErf.op || f.gelu.op == f.geglu.op ||
		f.gelu.function == f.geluErf.function || f.geglu.function == f.gegluErf.function {
		return errTensorLayout
	}
	f.exact(gelu)
	f.exact(geglu)
	if l.GetUnaryOp(gelu) != l.GetUnaryOp(geluErf) || l.GetGLUOp(geglu) != l.GetGLUOp(gegluErf) {
		return errTensorLayout
	}
	forms.Lock()
	forms.geluForms = f
	forms.Unlock()
	return nil
}

// forms are the process's: it opens one library, and purego frees no callback.
var forms struct {
	sync.RWMutex
	geluForms
}

// ExactGELU makes a context with these parameters compute every GELU with the
// error function.
func ExactGELU(p *ContextParams) { p.CbEval = geluCallback() }

// geluCallback answers that it needs no node's data, so graphs are computed as
// without it. It is asked for every node, once a computation.
var geluCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(t *TensorHead, ask, _ uintptr) uintptr {
		if byte(ask) != 0 { // a C bool is the lowest byte
			forms.RLock()
			forms.exact(t)
			forms.RUnlock()
		}
		return 0
	})
})
