//go:build linux || darwin

package metrics_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/host/metrics"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

func TestOutcome(t *testing.T) {
	for want, err := range map[string]error{
		"ok":                   nil,
		"crashed_timeout":      &host.EngineCrashed{Cause: host.CauseTimeout},
		"canceled":             &host.RequestCanceled{Err: context.Canceled},
		"gone":                 &host.WorkerGone{Why: host.ErrKilled},
		"refused_oom":          &protocol.Error{Code: protocol.CodeOOM},
		"refused_other":        &protocol.Error{Code: "invented by a worker"},
		"unsent":               &protocol.OversizeError{},
		"crashed_violation":    &host.EngineCrashed{Cause: host.CauseViolation, Err: protocol.Violation("x")},
		"refused_unsupported":  protocol.Errorf(protocol.CodeUnsupported, "x"),
		"crashed_signal":       errors.Join(&host.EngineCrashed{Cause: host.CauseSignal}),
		"refused_unknown_type": protocol.Errorf(protocol.CodeUnknownType, "x"),
	} {
		if got := metrics.Outcome(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestMetricsOfAPool(t *testing.T) {
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.fake")
	if err := os.WriteFile(path, []byte(fake.Magic+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := protocol.FileDigest(strings.NewReader(fake.Magic + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	requests, spans := metrics.NewRequests(), tracetest.NewSpanRecorder()
	tracer := metrics.NewTracer(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	p, err := host.NewPool(host.PoolSpec{Worker: host.Spec{
		Path: wiretest.Build(t, "cmd/worker-fake"), RuntimeDir: dir, Args: []string{"--cache-dir", dir},
		Observers: []host.Observer{requests, tracer},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(requests, metrics.NewPoolCollector(p))

	ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
	defer cancel()
	model := host.LoadRequest{Path: path, Digest: digest, Format: fake.Format, Config: map[string]any{"placement_share": 0.5, "max_tokens": 4}}
	l, err := p.Acquire(ctx, model)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{1, 2}, {3}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{1, 2, 3, 4, 5}}}); err == nil {
		t.Fatal("five tokens were taken where four are the limit")
	}
	l.Release()

	for start := time.Now(); p.Health().Workers[0].Stamp.IsZero() || p.Health().Workers[0].State != "idle"; time.Sleep(time.Millisecond) {
		if time.Since(start) > wiretest.Patience {
			t.Fatal("the vital signs were never taken")
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP synapse_lane_quarantined Quarantined pairs of model and config.
# TYPE synapse_lane_quarantined gauge
synapse_lane_quarantined 0
# HELP synapse_lane_state 1 for the lane's state, 0 for the others.
# TYPE synapse_lane_state gauge
synapse_lane_state{state="closed"} 0
synapse_lane_state{state="degraded"} 0
synapse_lane_state{state="down"} 0
synapse_lane_state{state="ready"} 1
# HELP synapse_worker_models Models that the worker has loaded.
# TYPE synapse_worker_models gauge
synapse_worker_models{worker="0"} 1
# HELP synapse_worker_request_rows_total Rows and candidates of answered requests.
# TYPE synapse_worker_request_rows_total counter
synapse_worker_request_rows_total{engine="fake",stage="embed"} 2
synapse_worker_request_rows_total{engine="fake",stage="load"} 0
synapse_worker_request_rows_total{engine="fake",stage="ping"} 0
# HELP synapse_worker_restarts_total Starts in this place after the first.
# TYPE synapse_worker_restarts_total counter
synapse_worker_restarts_total{worker="0"} 0
# HELP synapse_worker_up 1 where the place has a worker.
# TYPE synapse_worker_up gauge
synapse_worker_up{worker="0"} 1
`), "synapse_lane_quarantined", "synapse_lane_state", "synapse_worker_models", "synapse_worker_restarts_total", "synapse_worker_up", "synapse_worker_request_rows_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("the names: %v, %v", problems, err)
	}
	outcomes := map[string]codes.Code{}
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == "synapse.outcome" {
				outcomes[s.Name()+" "+a.Value.AsString()] = s.Status().Code
			}
		}
	}
	for name, want := range map[string]codes.Code{"worker load ok": codes.Unset, "worker embed ok": codes.Unset, "worker embed refused_request_invalid": codes.Error} {
		if got, ok := outcomes[name]; !ok || got != want {
			t.Errorf("no span %q with status %v among %v", name, want, outcomes)
		}
	}
}
