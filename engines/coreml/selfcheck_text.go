package coreml

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r SelfReport) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "macOS %s (%s), %s\n", r.MacOS, r.Build, r.Chip)
	fmt.Fprintf(&b, "Core ML has the %d messages that this worker sends, with %d differences\n", r.Messages, len(r.Differences))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	for _, d := range r.Devices {
		fmt.Fprintf(&b, "device %s", d.Kind)
		if d.Cores > 0 {
			fmt.Fprintf(&b, ", %d cores", d.Cores)
		}
		b.WriteByte('\n')
	}
	if r.Model != nil {
		r.Model.writeText(&b)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "FAILED %s\n", f)
	}
	if len(r.Failures) == 0 {
		b.WriteString("all is well\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m *ModelReport) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n  %s\n", m.Artifact, m.Digest)
	if len(m.Buckets) == 0 {
		return // it failed before there was anything to tell
	}
	fmt.Fprintf(b, "  %s, %d dims, %d tokens, %s\n", m.Arch, m.Dims, m.MaxTokens, m.ComputeUnits)
	fmt.Fprintf(b, "  loaded in %.0f ms, again in %.0f ms\n", m.FirstLoadMS, m.SecondLoadMS)
	if p := m.Placement; p != nil {
		fmt.Fprintf(b, "  planned on the Neural Engine: %.1f %% (%d of %d operations; GPU %d, CPU %d, unknown %d), coverage %.1f %%\n",
			100*p.Share, p.NeuralEngine, p.NeuralEngine+p.GPU+p.CPU+p.Unknown, p.GPU, p.CPU, p.Unknown, 100*p.Coverage)
		if p.CostShare != nil {
			fmt.Fprintf(b, "  by estimated cost: %.1f %%\n", 100**p.CostShare)
		}
		if len(p.OffEngine) > 0 {
			fmt.Fprintf(b, "  off it: %s\n", strings.Join(p.OffEngine, ", "))
		}
	} else {
		fmt.Fprintf(b, "  placement unknown: %s\n", m.Unknown)
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  bucket\tgolden rows\tworst\tmedian ms\tcpu_only ms\tspeedup")
	for _, l := range m.Buckets {
		worst, cpu, speedup := "-", "-", "-"
		if l.Worst != nil {
			worst = fmt.Sprintf("%s %.6f", l.WorstKind, *l.Worst)
		}
		if l.CPUOnlyMS > 0 {
			cpu, speedup = fmt.Sprintf("%.2f", l.CPUOnlyMS), fmt.Sprintf("%.1f", l.Speedup)
		}
		fmt.Fprintf(t, "  %d×%d\t%d\t%s\t%.2f\t%s\t%s\n", l.Rows, l.Tokens, l.GoldenRows, worst, l.MedianMS, cpu, speedup)
	}
	t.Flush()
}
