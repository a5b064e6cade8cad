package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/internal/assetstest"
)

// externalDir is MiniLM as a directory: the graph, and its weights in a file
// beside it.
func externalDir(t *testing.T) string {
	t.Helper()
	model, err := os.ReadFile(assetstest.Path(t, "minilm-onnx-f32"))
	if err != nil {
		t.Fatal(err)
	}
	graph, weights := external(t, model)
	if len(graph) > len(model)/10 || len(weights) < len(model)/2 {
		t.Fatalf("of %d bytes %d stay in the graph and %d lie beside it", len(model), len(graph), len(weights))
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"model.onnx": graph, weightsName: weights} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const weightsName = "model.onnx_data"

// Fields of onnx.proto.
const (
	modelGraph       protowire.Number = 7
	graphInitializer protowire.Number = 5
	tensorRaw        protowire.Number = 9
	tensorExternal   protowire.Number = 13
	tensorLocation   protowire.Number = 14
	entryKey         protowire.Number = 1
	entryValue       protowire.Number = 2
)

// external moves a model's weights into another file, but for short ones.
func external(t *testing.T, model []byte) (graph, weights []byte) {
	t.Helper()
	const least, isExternal = 1024, 1
	tensor := func(b []byte) []byte {
		var raw []byte
		rest := rewrite(t, b, tensorRaw, func(content []byte) []byte { raw = content; return nil })
		if len(raw) < least {
			return b
		}
		for _, pair := range [][2]string{{"location", weightsName}, {"offset", strconv.Itoa(len(weights))}, {"length", strconv.Itoa(len(raw))}} {
			entry := protowire.AppendString(protowire.AppendTag(nil, entryKey, protowire.BytesType), pair[0])
			entry = protowire.AppendString(protowire.AppendTag(entry, entryValue, protowire.BytesType), pair[1])
			rest = protowire.AppendBytes(protowire.AppendTag(rest, tensorExternal, protowire.BytesType), entry)
		}
		weights = append(weights, raw...)
		return protowire.AppendVarint(protowire.AppendTag(rest, tensorLocation, protowire.VarintType), isExternal)
	}
	graph = rewrite(t, model, modelGraph, func(b []byte) []byte { return rewrite(t, b, graphInitializer, tensor) })
	return graph, weights
}

// rewrite changes the fields of one number in a message, or removes those that
// become nil.
func rewrite(t *testing.T, message []byte, number protowire.Number, change func(content []byte) []byte) (out []byte) {
	t.Helper()
	for len(message) > 0 {
		n, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			t.Fatal(protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(n, kind, message[tag:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		field := message[:tag+size]
		if n == number && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(message[tag:])
			if content = change(content); content == nil {
				field = nil
			} else {
				field = protowire.AppendBytes(protowire.AppendTag(nil, n, kind), content)
			}
		}
		out = append(out, field...)
		message = message[tag+size:]
	}
	return out
}
