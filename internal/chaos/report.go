//go:build linux

package chaos

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"
)

// Report is what became of a campaign.
type Report struct {
	Seed     uint64
	Took     time.Duration
	Kinds    []*Line
	Findings []Finding
	Leaks    []error

	mu sync.Mutex
}

// Line counts one family of faults.
type Line struct {
	Kind                        string
	Faults, Hangs, Untyped, Bad int // Bad: a wrong answer, stage or cause
}

// Finding is a fault that did not end as it must.
type Finding struct {
	Number int
	Kind   string
	Fault  string
	Err    error
}

func newReport(c Config) *Report {
	r := &Report{Seed: c.Seed}
	for _, k := range kinds {
		r.Kinds = append(r.Kinds, &Line{Kind: k.name})
	}
	return r
}

func (r *Report) add(kind string, number int, name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.Kinds {
		if l.Kind != kind {
			continue
		}
		l.Faults++
		switch {
		case err == nil:
			return
		case errors.Is(err, errHang):
			l.Hangs++
		case errors.Is(err, errUntyped):
			l.Untyped++
		default:
			l.Bad++
		}
	}
	r.Findings = append(r.Findings, Finding{number, kind, name, err})
}

func (r *Report) leak(err error) { r.Leaks = append(r.Leaks, err) }

// Total sums the lines up.
func (r *Report) Total() Line {
	t := Line{Kind: "all"}
	for _, l := range r.Kinds {
		t.Faults += l.Faults
		t.Hangs += l.Hangs
		t.Untyped += l.Untyped
		t.Bad += l.Bad
	}
	return t
}

// OK says that every fault ended as it must and nothing is left.
func (r *Report) OK() bool { return len(r.Findings) == 0 && len(r.Leaks) == 0 }

// Print writes the table, the findings with how to replay them, and the leaks.
func (r *Report) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "fault\tinjected\thangs\tuntyped\twrong\t")
	total := r.Total()
	for _, l := range append(append([]*Line{}, r.Kinds...), &total) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", l.Kind, l.Faults, l.Hangs, l.Untyped, l.Bad)
	}
	t.Flush()
	const most = 20 // the first findings tell what is wrong; the rest repeat it
	for i, f := range r.Findings {
		if i == most {
			fmt.Fprintf(w, "and %d findings more\n", len(r.Findings)-most)
			break
		}
		fmt.Fprintf(w, "finding %d (%s: %s): %v\n  alone: chaos --seed %d --only %d\n", f.Number, f.Kind, f.Fault, f.Err, r.Seed, f.Number)
	}
	for _, l := range r.Leaks {
		fmt.Fprintf(w, "leak: %v\n", l)
	}
	fmt.Fprintf(w, "seed %d: %d faults, %d hangs, %d leaks, %d untyped, %d wrong, in %v\n",
		r.Seed, total.Faults, total.Hangs, len(r.Leaks), total.Untyped, total.Bad, r.Took.Round(time.Second))
}
