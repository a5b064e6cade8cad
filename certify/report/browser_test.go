//go:build browser

package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/synapse-module/workers/certify"
)

// browserPatience outlives a browser that starts on a loaded machine.
const browserPatience = 2 * time.Minute

// leastContrast is WCAG's for text of ordinary size.
const leastContrast = 4.5

// pageUnderTest writes the page: of the result that SYNAPSE_RESULT names, else of
// the sample.
func pageUnderTest(t *testing.T) string {
	t.Helper()
	page := rendered(t)
	if path := os.Getenv("SYNAPSE_RESULT"); path != "" {
		r, err := certify.ReadResult(path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := HTML(&b, r); err != nil {
			t.Fatal(err)
		}
		page = []byte(b.String())
	}
	path := filepath.Join(t.TempDir(), PageFile)
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lowContrast lists texts whose colour is too near to what lies behind them.
const lowContrast = `(() => {
	const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(Number).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c !== 'rgba(0, 0, 0, 0)') return c } return 'rgb(255, 255, 255)' };
	const found = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = texts.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.getClientRects().length) continue;
		const style = getComputedStyle(e);
		const [a, b] = [light(e.closest('svg') ? style.fill : style.color), light(behind(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < %v) found.push(n.data.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
	}
	return [...new Set(found)].slice(0, 10);
})()`

// The page in a browser, light and dark, on a phone and on a desk: it asks for
// nothing, complains of nothing, fits its width, and can be read. With
// SYNAPSE_SHOTS it leaves a picture of each.
func TestThePageInABrowser(t *testing.T) {
	path := pageUnderTest(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("hide-scrollbars", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root cannot have
	}
	ctx, stop := context.WithTimeout(t.Context(), browserPatience)
	defer stop()
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	defer stop()
	for _, screen := range []struct {
		name          string
		width, height int64
	}{{"phone", 390, 844}, {"desk", 1280, 900}} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(screen.name+" "+scheme, func(t *testing.T) {
				ctx, stop := chromedp.NewContext(ctx)
				defer stop()
				heard := listen(t, ctx)
				media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
				if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
					t.Fatal(err)
				}
				if err := chromedp.Do(ctx, chromedp.EmulateViewport(screen.width, screen.height), chromedp.Navigate("file://"+path)); err != nil {
					t.Fatal(err)
				}
				width := have(t, ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`))
				faint := have(t, ctx, chromedp.Evaluate[[]string](fmt.Sprintf(lowContrast, leastContrast)))
				picture := have(t, ctx, chromedp.CaptureScreenshot())
				if width > screen.width {
					t.Errorf("the page is %d pixels wide, the screen %d", width, screen.width)
				}
				if len(faint) > 0 {
					t.Errorf("hard to read: %q", faint)
				}
				for _, said := range heard() {
					if said != "asks for file://"+path {
						t.Errorf("the page %s", said)
					}
				}
				shot(t, screen.name+"-"+scheme, picture)
				shot(t, screen.name+"-charts-"+scheme, have(t, ctx, chromedp.Screenshot(chromedp.CSS(".charts"))))
			})
		}
	}
}

// shot keeps a picture where they are wanted.
func shot(t *testing.T, name string, picture []byte) {
	t.Helper()
	dir := os.Getenv("SYNAPSE_SHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// have runs an action that must succeed.
func have[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// listen notes what a page asks for and complains of.
func listen(t *testing.T, ctx context.Context) (heard func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			all = append(all, "asks for "+e.Request.URL)
		case *log.EventEntryAdded:
			all = append(all, "complains: "+e.Entry.Text)
		case *runtime.EventExceptionThrown:
			all = append(all, "throws: "+e.ExceptionDetails.Text)
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}
