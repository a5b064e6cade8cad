//go:build cgo && soak

package onnx

import (
	"math/rand/v2"
	"testing"
)

// TestSoak is 5,000 batches of random shape on a float and a quantised model:
// go test -tags soak -run Soak -timeout 3h ./engines/onnx
func TestSoak(t *testing.T) {
	for _, asset := range []string{"minilm-jar-onnx-f32", "minilm-jar-onnx-int8"} {
		t.Run(asset, func(t *testing.T) {
			m := loadAsset(t, asset, "")
			source := rand.New(rand.NewPCG(7, 8))
			var after500 float64
			for i := range 5000 {
				varied(t, m, source, 8, 64)
				if (i+1)%500 == 0 {
					now := residentMiB(t)
					t.Logf("%s: resident after %d batches %.0f MiB", asset, i+1, now)
					if after500 == 0 {
						after500 = now
					}
					if now > 1.05*after500+modelMiB/4 {
						t.Fatalf("resident memory grew from %.0f MiB after 500 batches to %.0f after %d", after500, now, i+1)
					}
				}
			}
		})
	}
}
