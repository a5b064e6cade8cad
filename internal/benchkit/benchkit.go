// Package benchkit compares a worker over the wire with the same engine called in
// this process: the two in turn, so that the machine's moods fall on both, and
// what is reported is each side's percentiles and their ratio inside one run.
package benchkit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// Discard is a log for engines under a benchmark.
var Discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// Pair is one model, loaded twice: in a worker process and in this one.
type Pair struct {
	Worker *host.Worker
	Ref    string
	Model  workerkit.Model
}

// Load starts exe and loads the artifact in it and in engine, with the same
// runtime_config.
func Load(b *testing.B, exe string, args []string, engine workerkit.Engine, path, format, config string) Pair {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	digest, err := protocol.FileDigest(f)
	if err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	w, err := host.Start(ctx, host.Spec{Path: exe, Args: args})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close(ctx) })
	loaded, err := w.Load(ctx, host.LoadRequest{Path: path, Digest: digest, Format: format, Config: jsontext.Value(config)})
	if err != nil {
		b.Fatal(err)
	}
	c, err := workerkit.DecodeConfig(engine.Info().Options, jsontext.Value(config))
	if err != nil {
		b.Fatal(err)
	}
	model, err := engine.Load(ctx, workerkit.Artifact{Path: path, File: f, Size: info.Size(), Format: format, Digest: string(digest), Name: path}, c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { model.Close() })
	return Pair{Worker: w, Ref: loaded.Ref, Model: model}
}

// Embed measures the same rows over the wire and in process, in turn.
func (p Pair) Embed(b *testing.B, rows [][]int32, pooling workerkit.Pooling) {
	b.Helper()
	ctx := context.Background()
	wire := func() {
		if _, err := p.Worker.Embed(ctx, host.EmbedRequest{Model: p.Ref, Pooling: string(pooling), Rows: rows}); err != nil {
			b.Fatal(err)
		}
	}
	local := func() {
		if _, err := p.Model.(workerkit.Embedder).Embed(ctx, rows, pooling); err != nil {
			b.Fatal(err)
		}
	}
	wire()
	local()
	var over, inside []time.Duration
	for b.Loop() {
		over = append(over, timed(wire))
		inside = append(inside, timed(local))
	}
	o, i := percentile(over, 50), percentile(inside, 50)
	report(b, over, "wire")
	report(b, inside, "inproc")
	b.ReportMetric(float64((o-i).Nanoseconds())/1e3, "wire-cost-µs")
	b.ReportMetric(100*float64(o-i)/float64(o), "wire-share-%")
}

// Ping measures the bare round trip.
func (p Pair) Ping(b *testing.B) {
	b.Helper()
	var all []time.Duration
	for b.Loop() {
		all = append(all, timed(func() {
			if _, err := p.Worker.Ping(context.Background()); err != nil {
				b.Fatal(err)
			}
		}))
	}
	report(b, all, "ping")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// report gives p50 and p99 in microseconds; ns/op of a paired run means nothing.
func report(b *testing.B, d []time.Duration, name string) {
	b.ReportMetric(0, "ns/op")
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(percentile(d, p).Nanoseconds())/1e3, fmt.Sprintf("%s-p%d-µs", name, p))
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*p/100)]
}
