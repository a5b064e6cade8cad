package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/synapse-module/workers/host"
)

// Requests counts and times requests for Prometheus. It is an observer and a
// collector.
type Requests struct {
	seconds *prometheus.HistogramVec
	tokens  *prometheus.CounterVec
	rows    *prometheus.CounterVec
}

// requestBuckets reach from one short query on a small model to a first load for a
// neural engine.
var requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewRequests makes the metrics
//
//	synapse_worker_request_seconds{engine, stage, outcome}
//	synapse_worker_request_tokens_total{engine, stage}
//	synapse_worker_request_rows_total{engine, stage}
//
// of which the last two count answered requests only. See [Outcome].
func NewRequests() *Requests {
	return &Requests{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "synapse_worker_request_seconds",
			Help:    "Time from a request to its answer or error, the wait for the worker's lane included.",
			Buckets: requestBuckets,
		}, []string{"engine", "stage", "outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synapse_worker_request_tokens_total",
			Help: "Token ids of answered requests.",
		}, []string{"engine", "stage"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "synapse_worker_request_rows_total",
			Help: "Rows and candidates of answered requests.",
		}, []string{"engine", "stage"}),
	}
}

// Begin implements host.Observer.
func (r *Requests) Begin(_ context.Context, info host.RequestInfo) func(error) {
	began := time.Now()
	return func(err error) {
		stage := string(info.Stage)
		r.seconds.WithLabelValues(info.Engine, stage, Outcome(err)).Observe(time.Since(began).Seconds())
		if err == nil {
			r.tokens.WithLabelValues(info.Engine, stage).Add(float64(info.Tokens))
			r.rows.WithLabelValues(info.Engine, stage).Add(float64(info.Rows))
		}
	}
}

// Describe implements prometheus.Collector.
func (r *Requests) Describe(c chan<- *prometheus.Desc) {
	r.seconds.Describe(c)
	r.tokens.Describe(c)
	r.rows.Describe(c)
}

// Collect implements prometheus.Collector.
func (r *Requests) Collect(c chan<- prometheus.Metric) {
	r.seconds.Collect(c)
	r.tokens.Collect(c)
	r.rows.Collect(c)
}
