//go:build linux

// Package chaos is the fault campaign of the module's side: thousands of seeded
// faults in real worker processes, each of which must end in a right answer or in
// an error of the right type, stage and cause, and none of which may leave a
// goroutine, descriptor, process or socket behind.
//
// A campaign is its seed. Fault i of a seed is the same in every run and runs
// alone as well, so a finding is replayed by its seed and number.
package chaos
