// Package metrics shows what package host does to Prometheus and OpenTelemetry.
// Nothing here runs unless it is asked for: an [*Requests] and a [Tracer] are put
// into host.Spec.Observers, a [*PoolCollector] is registered.
package metrics
