package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/synapse-module/workers/host"
)

// PoolCollector shows a pool's health to Prometheus. A scrape reads the cached
// snapshot and touches no worker.
type PoolCollector struct{ health func() host.Health }

// NewPoolCollector makes a collector of one pool. Several are told apart by a
// label, as of prometheus.WrapRegistererWith.
func NewPoolCollector(p *host.Pool) *PoolCollector { return &PoolCollector{p.Health} }

var (
	laneState   = prometheus.NewDesc("synapse_lane_state", "1 for the lane's state, 0 for the others.", []string{"state"}, nil)
	waiting     = prometheus.NewDesc("synapse_lane_waiting", "Requests that wait for a worker.", nil, nil)
	crashes     = prometheus.NewDesc("synapse_lane_crashes", "Crashes over all work within the policy's window.", nil, nil)
	quarantined = prometheus.NewDesc("synapse_lane_quarantined", "Quarantined pairs of model and config.", nil, nil)
	up          = prometheus.NewDesc("synapse_worker_up", "1 where the place has a worker.", []string{"worker"}, nil)
	restarts    = prometheus.NewDesc("synapse_worker_restarts_total", "Starts in this place after the first.", []string{"worker"}, nil)
	resident    = prometheus.NewDesc("synapse_worker_resident_bytes", "Resident memory, as of the last refresh.", []string{"worker"}, nil)
	memory      = prometheus.NewDesc("synapse_worker_memory_bytes", "The worker's own memory: anonymous and swapped where the system tells, else resident.", []string{"worker"}, nil)
	models      = prometheus.NewDesc("synapse_worker_models", "Models that the worker has loaded.", []string{"worker"}, nil)
	share       = prometheus.NewDesc("synapse_worker_placement_share", "Share of operations planned for the Neural Engine.", []string{"worker"}, nil)
	age         = prometheus.NewDesc("synapse_worker_refresh_age_seconds", "Age of the vital signs.", []string{"worker"}, nil)
)

// Describe implements prometheus.Collector.
func (c *PoolCollector) Describe(d chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{laneState, waiting, crashes, quarantined, up, restarts, resident, memory, models, share, age} {
		d <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *PoolCollector) Collect(out chan<- prometheus.Metric) {
	h := c.health()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range []host.LaneState{host.LaneReady, host.LaneDegraded, host.LaneDown, host.LaneClosed} {
		is := 0.0
		if s == h.Lane {
			is = 1
		}
		gauge(laneState, is, string(s))
	}
	gauge(waiting, float64(h.Waiting))
	gauge(crashes, float64(h.Crashes))
	gauge(quarantined, float64(len(h.Quarantined)))
	for i, w := range h.Workers {
		n := strconv.Itoa(i)
		out <- prometheus.MustNewConstMetric(restarts, prometheus.CounterValue, float64(w.Restarts), n)
		if w.ID == "" {
			gauge(up, 0, n)
			continue
		}
		gauge(up, 1, n)
		gauge(models, float64(len(w.Models)), n)
		if w.Stamp.IsZero() {
			continue // no vital signs yet: no value is better than a zero
		}
		gauge(resident, float64(w.RSSMB<<20), n)
		gauge(memory, float64(w.Memory), n)
		gauge(age, w.Age(h.Stamp).Seconds(), n)
		if w.PlacementShare != nil {
			gauge(share, *w.PlacementShare, n)
		}
	}
}
