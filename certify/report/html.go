package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jedib0t/go-pretty/v6/text"
	"gonum.org/v1/plot/plotter"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
)

//go:embed page.html.tmpl
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "limit": limit, "explain": explain, "seconds": func(s float64) string { return fmt.Sprintf("%.0f s", s) },
	"lack":    func(c gate.Figure) string { return fmt.Sprintf("%.2g", 1-float64(c)) },
	"clip":    func(s string) string { return text.Snip(s, clipPage, "…") },
	"deref":   func(s *string) string { return *s },
	"compact": compact, "joined": strings.Join, "control": describeControl, "percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
	"headline": func(r certify.ArtifactResult) string {
		if c, ok := headline(r); ok {
			return c.Gate + " " + c.Figure + " " + number(c.Value)
		}
		return ""
	},
	"size": size, "apart": func(p certify.Scored) string { return fmt.Sprintf("%.2g", apart(p)) },
}).Parse(pageSource))

// clipPage is how much of a text the page shows.
const clipPage = 160

// worstRows is how many of the inputs that lie worst a page shows.
const worstRows = 10

// HTML writes a result as one page that needs nothing but itself.
func HTML(w io.Writer, r *certify.Result) error {
	data := pageData{Result: r}
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			d, err := runOf(s, run)
			if err != nil {
				return fmt.Errorf("%s %s: %w", s.Name, run.Artifact, err)
			}
			data.Runs = append(data.Runs, d)
		}
	}
	return page.Execute(w, data)
}

type pageData struct {
	*certify.Result
	Runs []runData
}

type runData struct {
	Suite certify.SuiteResult
	certify.ArtifactResult
	Charts     []figure
	Worst      []certify.Row
	WorstPairs []certify.Scored
}

// figure is a chart and what it shows.
type figure struct {
	Title, Caption string
	SVG            template.HTML
}

func runOf(s certify.SuiteResult, run certify.ArtifactResult) (runData, error) {
	d := runData{Suite: s, ArtifactResult: run, Worst: slices.Clone(run.Rows)}
	slices.SortStableFunc(d.Worst, func(a, b certify.Row) int {
		switch x, y := order(a.Cosine), order(b.Cosine); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	d.Worst = d.Worst[:min(worstRows, len(d.Worst))]
	d.WorstPairs = worstPairs(run.Pairs)
	for _, draw := range []func(certify.ArtifactResult) ([]figure, error){
		cosineCharts, similarityChart, peopleCharts, scoreCharts, answersChart, speedChart,
	} {
		figures, err := draw(run)
		if err != nil {
			return d, err
		}
		d.Charts = append(d.Charts, figures...)
	}
	return d, nil
}

// compact writes JSON without the space that a file has.
func compact(v jsontext.Value) string {
	if v = v.Clone(); v.Compact() != nil {
		return ""
	}
	return string(v)
}

// order sorts what is no number before every number.
func order(f gate.Figure) float64 {
	if v := float64(f); !math.IsNaN(v) {
		return v
	}
	return math.Inf(-1)
}

func isFinite(f gate.Figure) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

func cosineCharts(run certify.ArtifactResult) ([]figure, error) {
	var values plotter.Values
	var points plotter.XYs
	longest := 0.0
	for _, row := range run.Rows {
		if isFinite(row.Cosine) {
			values = append(values, lack(float64(row.Cosine)))
			points = append(points, plotter.XY{X: float64(row.Tokens), Y: lack(float64(row.Cosine))})
			longest = max(longest, float64(row.Tokens))
		}
	}
	at := slices.IndexFunc(run.Checks, func(c gate.Check) bool { return c.Gate == "cosine" && c.Figure == "min" })
	if len(values) == 0 || at < 0 {
		return nil, nil
	}
	bound := lack(float64(run.Checks[at].Limit))
	const axis = "log10(1 - cosine)"
	h, err := histogram(axis, "texts", values, bound)
	if err != nil {
		return nil, err
	}
	s, err := scatter("tokens", axis, points, plotter.XYs{{X: 0, Y: bound}, {X: longest, Y: bound}})
	if err != nil {
		return nil, err
	}
	is := limit(run.Checks[at].Limit)
	return []figure{
		{"Distance from the reference", "How many texts lie how far from the reference's vector; left is better. The dashed line is the limit, a cosine of " + is + ".", h},
		{"Length against error", "Each text by its length; lower is better. The dashed line is the limit.", s},
	}, nil
}

func similarityChart(run certify.ArtifactResult) ([]figure, error) {
	var points plotter.XYs
	low := 1.0
	for _, p := range run.Similarities {
		if isFinite(p.Ours) && isFinite(p.Reference) {
			points = append(points, plotter.XY{X: float64(p.Reference), Y: float64(p.Ours)})
			low = min(low, float64(p.Reference))
		}
	}
	if len(points) == 0 {
		return nil, nil
	}
	s, err := scatter("reference", "this worker", points, plotter.XYs{{X: low, Y: low}, {X: 1, Y: 1}})
	return []figure{{"Similarity of two texts", fmt.Sprintf("Cosine of %d pairs of texts; on the dashed line both agree.", len(points)), s}}, err
}

func peopleCharts(run certify.ArtifactResult) ([]figure, error) {
	sets := map[string]plotter.XYs{}
	var names []string
	for _, p := range run.People {
		if !isFinite(p.Ours) {
			continue
		}
		if sets[p.Set] == nil {
			names = append(names, p.Set)
		}
		sets[p.Set] = append(sets[p.Set], plotter.XY{X: p.Score, Y: float64(p.Ours)})
	}
	var all []figure
	for _, name := range names {
		s, err := scatter("what people said", "this worker", sets[name])
		if err != nil {
			return nil, err
		}
		all = append(all, figure{"Agreement with people: " + name, fmt.Sprintf("%d pairs of texts that people rated for likeness, and the cosine of their vectors.", len(sets[name])), s})
	}
	return all, nil
}

func speedChart(run certify.ArtifactResult) ([]figure, error) {
	if run.Performance == nil {
		return nil, nil
	}
	var names []string
	var values plotter.Values
	for _, s := range run.Performance.Shapes {
		names = append(names, fmt.Sprintf("%d × %d", s.Rows, s.Tokens))
		values = append(values, s.TokensPerSecond)
	}
	b, err := bars("tokens per second", names, values)
	return []figure{{"Speed", "Rows × tokens a row. Of this machine in that hour, and of no other.", b}}, err
}

// describeControl says how a control was caught.
func describeControl(c gate.Control) string {
	switch i := slices.IndexFunc(c.Checks, func(k gate.Check) bool { return !k.Passed }); {
	case c.Hidden != "":
		return c.Hidden
	case c.Refused != "":
		return "the worker refused: " + c.Refused
	case i >= 0:
		return fmt.Sprintf("%s %s was %s, due was %s %s", c.Checks[i].Gate, c.Checks[i].Figure, number(c.Checks[i].Value), c.Checks[i].Relation, limit(c.Checks[i].Limit))
	default:
		return "nothing caught it"
	}
}
