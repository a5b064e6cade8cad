package llama

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// Where a product's weights are quantised, llama.cpp's CPU backend quantises the
// other factor too, to 8 bits in blocks. The file says nothing of that, and for
// short texts it costs more than the weights' own rounding (docs/adr/0023). So the
// library can be given the same weights in a type that it multiplies as they are.

// maxHalf is the largest finite value of f16.
const maxHalf = 65504

// lookedUp are tables of which single rows are taken, without a product: as they
// stand in the file they are exact. The vocabulary's is one where it is not also
// the output's.
var lookedUp = map[string]bool{
	"token_types.weight": true, "position_embd.weight": true, "per_layer_token_embd.weight": true,
}

// weightTypes are the values of the option that name one.
var weightTypes = map[string]gguf.Type{weightsF16: gguf.F16, weightsF32: gguf.F32}

// retype lays the file out as the library is to be given it, whose tensors are of
// types that it computes with.
func (p plan) retype(f *gguf.File, s settings) (*gguf.Retyped, error) {
	if err := checkTypes(f); err != nil {
		return nil, err
	}
	wanted := s.weights
	if wanted == weightsAuto {
		wanted = weightsFile
		if p.encoder {
			wanted = weightsF16
		}
	}
	to, expand := weightTypes[wanted]
	_, output := f.Tensor("output.weight")
	return f.Retype(func(t gguf.Tensor) gguf.Type {
		table := lookedUp[t.Name] || t.Name == "token_embd.weight" && (p.encoder || output)
		if !expand || table || !t.Type.Quantized() {
			return t.Type
		}
		return to
	})
}

// copied is a file that this process made for the library to load.
type copied struct {
	io.Writer
	finish  func() (path string, err error) // after the last write
	release func()                          // once, when nothing uses the file
}

// written makes the file that r lays out, and returns its path.
func (e *engine) written(ctx context.Context, name string, r *gguf.Retyped) (path string, release func(), err error) {
	c, err := e.newCopied()
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	w := &keptError{w: c}
	err = r.Write(ctx, w, e.converter())
	var refusal *protocol.Error
	switch {
	case w.err != nil:
		return "", nil, w.err
	case err == nil:
		path, err = c.finish()
		return path, c.release, err
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case errors.As(err, &refusal):
		return "", nil, err
	}
	return "", nil, workerkit.ArtifactInvalid("%s: %v", name, err)
}

// keptError tells what failed at the writer from what failed at the file read.
type keptError struct {
	w   io.Writer
	err error
}

func (k *keptError) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	if err != nil {
		k.err = notCopied(err)
	}
	return n, err
}

// notCopied is the error of a copy that cannot be made.
func notCopied(err error) error {
	return workerkit.EngineFailed("the weights cannot be written out in the type that they are computed in: %v; runtime_config.%s %q computes with the file as it is", err, optWeights, weightsFile)
}

// converter has the library compute what stands in its own types.
func (e *engine) converter() gguf.Convert {
	var (
		of         gguf.Type
		dequantize func([]float32, []byte)
		values     []float32
	)
	return func(dst, src []byte, from, to gguf.Type) error {
		elements, bytes := from.Block()
		if dequantize == nil || of != from {
			var err error
			if dequantize, err = e.lib.Dequantize(uint32(from), elements, bytes); err != nil {
				return workerkit.EngineFailed("%v", err)
			}
			of = from
		}
		n := int64(len(src)) / bytes * elements
		if int64(cap(values)) < n {
			values = make([]float32, n)
		}
		values = values[:n]
		dequantize(values, src)
		if to == gguf.F32 {
			for i, v := range values {
				binary.LittleEndian.PutUint32(dst[float32Bytes*i:], math.Float32bits(v))
			}
			return nil
		}
		for _, v := range values {
			if v > maxHalf || v < -maxHalf {
				return fmt.Errorf("it holds the weight %v, which f16 cannot: load it with runtime_config.%s %q or %q", v, optWeights, weightsF32, weightsFile)
			}
		}
		e.lib.Halves(dst, values)
		return nil
	}
}
