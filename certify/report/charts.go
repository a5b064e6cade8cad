package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of a chart are stand-ins: each becomes a variable of the page, so
// that one drawing serves a light and a dark page.
var (
	ink    = color.NRGBA{R: 1, G: 1, B: 1, A: 255}
	grid   = color.NRGBA{R: 2, G: 2, B: 2, A: 255}
	series = color.NRGBA{R: 3, G: 3, B: 3, A: 255}
	limits = color.NRGBA{R: 4, G: 4, B: 4, A: 255}

	pageColours = strings.NewReplacer(
		"#010101", "var(--ink2)", "#020202", "var(--grid)", "#030303", "var(--series)", "#040404", "var(--limit)",
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
	)
	svgRoot = regexp.MustCompile(`(?s)^.*?<svg [^>]*?viewBox`)
)

const (
	// The size of a chart is that of a phone's width, where its text is then as
	// large as the page's; wider pages put charts side by side.
	chartWidth, chartHeight = 360, 240

	// closest is the least distance of a cosine from 1 that is drawn: float64 has
	// no smaller one.
	closest = 1e-16

	labelRoom   = 10
	pointRadius = 2
	bins        = 24
)

// lack is how far a cosine is from 1, as a power of ten.
func lack(cosine float64) float64 { return math.Log10(math.Max(1-cosine, closest)) }

// newChart is a plot in the page's style.
func newChart(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for axis, label := range map[*plot.Axis]string{&p.X: x, &p.Y: y} {
		axis.Label.Text = label
		axis.Color, axis.Tick.Color = grid, grid
		axis.Tick.Marker = plot.TickerFunc(shortTicks)
		for _, style := range []*draw.TextStyle{&axis.Label.TextStyle, &axis.Tick.Label} {
			style.Color = ink
			style.Font.Variant = "Sans"
			style.Font.Size = 11
		}
	}
	return p
}

// shortTicks are gonum's ticks with labels that have no more digits than they
// need.
func shortTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(math.Round(t.Value*1e6)/1e6, 'g', -1, 64)
		}
	}
	return ticks
}

// scatter draws points, and lines that bound them.
func scatter(x, y string, points plotter.XYs, bounds ...plotter.XYs) (template.HTML, error) {
	p := newChart(x, y)
	s, err := plotter.NewScatter(points)
	if err != nil {
		return "", err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: series, Radius: pointRadius, Shape: draw.CircleGlyph{}}
	p.Add(gridLines(), s)
	if err := addBounds(p, bounds...); err != nil {
		return "", err
	}
	return svg(p)
}

// histogram draws how often values occur, and a limit unless it is NaN.
func histogram(x, y string, values plotter.Values, limit float64) (template.HTML, error) {
	p := newChart(x, y)
	h, err := plotter.NewHist(values, bins)
	if err != nil {
		return "", err
	}
	h.FillColor, h.LineStyle.Width = series, 0
	p.Add(gridLines(), h)
	_, _, _, most := h.DataRange()
	if math.IsNaN(limit) {
		return svg(p)
	}
	if err := addBounds(p, plotter.XYs{{X: limit, Y: 0}, {X: limit, Y: most}}); err != nil {
		return "", err
	}
	return svg(p)
}

// bars draws one bar a name.
func bars(x string, names []string, values plotter.Values) (template.HTML, error) {
	p := newChart(x, "")
	const thickness = 22
	b, err := plotter.NewBarChart(values, thickness)
	if err != nil {
		return "", err
	}
	b.Horizontal, b.Color, b.LineStyle.Width = true, series, 0
	p.Add(b)
	p.NominalY(names...)
	p.X.Min = 0
	// Half a bar beside the first and the last.
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	return svg(p)
}

func gridLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = grid, grid
	return g
}

func addBounds(p *plot.Plot, bounds ...plotter.XYs) error {
	for _, b := range bounds {
		l, err := plotter.NewLine(b)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: limits, Width: 1.5, Dashes: []vg.Length{4, 3}}
		p.Add(l)
	}
	return nil
}

// svg draws a plot as an element of the page.
func svg(p *plot.Plot) (template.HTML, error) {
	c := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight))
	// The last label of an axis is centred on its end.
	p.Draw(draw.Crop(draw.New(c), 0, -labelRoom, 0, -labelRoom))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw a chart: %w", err)
	}
	out := svgRoot.ReplaceAllString(b.String(), `<svg class="chart" role="img" viewBox`)
	// The drawing holds numbers and this package's own labels, nothing of a
	// worker's or a suite's.
	return template.HTML(pageColours.Replace(out)), nil
}
