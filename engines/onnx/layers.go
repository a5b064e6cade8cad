//go:build cgo

package onnx

import (
	"math"
	"slices"

	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
)

// apply passes a vector through the layers after pooling, into dst, and returns
// v's memory, which it has used, for the next time.
func apply(dst, v []float32, layers []sidecar.Layer) []float32 {
	for _, l := range layers {
		if l.Normalize {
			normalize(v)
			continue
		}
		// The result is put behind its input, and the two change places.
		v = slices.Grow(v, l.Out)
		in, out := v[:l.In], v[l.In:l.In+l.Out]
		dense(out, in, l)
		v = v[:copy(v[:l.Out], out)]
	}
	copy(dst, v)
	return v
}

// dense is out = W·in + b, summed in float64, and its tanh where the layer has
// one.
func dense(out, in []float32, l sidecar.Layer) {
	for i := range out {
		weights := l.Weight[i*l.In : (i+1)*l.In]
		var sum float64
		for k, w := range weights {
			sum += float64(w) * float64(in[k])
		}
		if l.Bias != nil {
			sum += float64(l.Bias[i])
		}
		if l.Tanh {
			sum = math.Tanh(sum)
		}
		out[i] = float32(sum)
	}
}

// normalize scales v to length 1; zeros have no direction and stay.
func normalize(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
}
