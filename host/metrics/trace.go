package metrics

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/synapse-module/workers/host"
)

// Tracer makes an OpenTelemetry span of each request.
type Tracer struct{ tracer trace.Tracer }

// NewTracer makes an observer whose spans go to p.
func NewTracer(p trace.TracerProvider) Tracer {
	return Tracer{p.Tracer("github.com/synapse-module/workers/host")}
}

// Begin implements host.Observer. The span is a child of the one in ctx.
func (t Tracer) Begin(ctx context.Context, r host.RequestInfo) func(error) {
	_, span := t.tracer.Start(ctx, "worker "+string(r.Stage), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("synapse.worker.id", r.Worker),
		attribute.Int("process.pid", r.PID),
		attribute.String("synapse.engine", r.Engine),
		attribute.String("synapse.model", r.Model),
		attribute.Int("synapse.rows", r.Rows),
		attribute.Int("synapse.tokens", r.Tokens),
	))
	return func(err error) {
		span.SetAttributes(attribute.String("synapse.outcome", Outcome(err)))
		var crash *host.EngineCrashed
		if errors.As(err, &crash) {
			span.SetAttributes(attribute.String("synapse.crash.cause", string(crash.Cause)), attribute.String("synapse.crash.signal", crash.Signal))
		}
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, Outcome(err))
		}
		span.End()
	}
}
