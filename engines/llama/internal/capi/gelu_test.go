package capi

import (
	"errors"
	"testing"
)

func TestOnlyTheTanhFormsAreChanged(t *testing.T) {
	l := openLibrary(t)
	ctx := l.GGMLInit(initParams{MemSize: 64 << 10, NoAlloc: true})
	defer l.GGMLFree(ctx)
	in := l.NewTensor1D(ctx, int32(TypeF32), 2)
	forms.RLock()
	f := forms.geluForms
	forms.RUnlock()
	for name, c := range map[string]struct{ node, want *TensorHead }{
		"gelu":      {l.GELU(ctx, in), l.GELUErf(ctx, in)},
		"geglu":     {l.GEGLU(ctx, in), l.GEGLUErf(ctx, in)},
		"gelu_erf":  {l.GELUErf(ctx, in), l.GELUErf(ctx, in)},
		"geglu_erf": {l.GEGLUErf(ctx, in), l.GEGLUErf(ctx, in)},
		"a leaf":    {in, l.NewTensor1D(ctx, int32(TypeF32), 2)},
	} {
		f.exact(c.node)
		if c.node.operation() != c.want.operation() {
			t.Errorf("%s became %+v, want %+v", name, c.node.operation(), c.want.operation())
		}
	}
}

// TestAForeignNodeLayoutIsRefused: libraries whose functions read another integer
// than the one that is written, or build nodes that cannot be told apart.
func TestAForeignNodeLayoutIsRefused(t *testing.T) {
	node := func(op, function int32) func(uintptr, *TensorHead) *TensorHead {
		return func(uintptr, *TensorHead) *TensorHead {
			return &TensorHead{Op: op, OpParams: [16]int32{function}}
		}
	}
	read := func(t *TensorHead) int32 { return t.OpParams[0] }
	library := func() *Library {
		return &Library{Functions: Functions{
			GGMLInit:    func(initParams) uintptr { return 1 },
			GGMLFree:    func(uintptr) {},
			NewTensor1D: func(uintptr, int32, int64) *TensorHead { return &TensorHead{Ne: [4]int64{2, 1, 1, 1}} },
			GELU:        node(80, 9), GELUErf: node(80, 17), GEGLU: node(90, 1), GEGLUErf: node(90, 4),
			GetUnaryOp: read, GetGLUOp: read,
		}}
	}
	before := forms.geluForms
	defer func() { forms.geluForms = before }()
	if err := library().readGELU(); err != nil {
		t.Fatalf("a library that fits: %v", err)
	}
	for name, spoil := range map[string]func(*Library){
		"another size":                   func(l *Library) { l.NewTensor1D = func(uintptr, int32, int64) *TensorHead { return &TensorHead{} } },
		"the operation lies elsewhere":   func(l *Library) { l.GELU, l.GELUErf = node(80, 0), node(80, 0) },
		"both are one operation":         func(l *Library) { l.GEGLU, l.GEGLUErf = node(80, 1), node(80, 4) },
		"the function is read elsewhere": func(l *Library) { n := int32(0); l.GetUnaryOp = func(*TensorHead) int32 { n++; return n } },
	} {
		l := library()
		spoil(l)
		if err := l.readGELU(); !errors.Is(err, errTensorLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
