// Command assets fetches, makes and verifies the native libraries and models
// that assets.lock pins.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/synapse-module/workers/internal/assets"
)

type cli struct {
	Sync   syncCmd   `cmd:"" help:"Bring assets into the store and verify them."`
	Path   pathCmd   `cmd:"" help:"Print the path of an asset's main file, getting it first where it is missing."`
	Verify verifyCmd `cmd:"" help:"Hash the assets of the store against the lock; fetch nothing."`
	List   listCmd   `cmd:"" help:"List the assets of the lock."`
}

type selection struct {
	All   bool     `help:"Also the libraries of the other platforms."`
	Names []string `arg:"" optional:"" name:"name" help:"Assets, in place of all that this platform uses."`
}

// Validate stands in for kong's xor tag, which does not see arguments.
func (s selection) Validate() error {
	if s.All && len(s.Names) > 0 {
		return errors.New("--all and names exclude each other")
	}
	return nil
}

func (s selection) names(store *assets.Store) ([]string, error) {
	if s.All {
		return store.All(), nil
	}
	return store.Choose(s.Names...)
}

type syncCmd struct{ selection }

func (c syncCmd) Run(ctx context.Context, store *assets.Store) error {
	names, err := c.names(store)
	if err != nil {
		return err
	}
	if err := store.Sync(ctx, names...); err != nil {
		return err
	}
	fmt.Printf("%d verified in %s\n", len(names), store.Dir())
	return nil
}

type pathCmd struct {
	Name string `arg:"" help:"Asset."`
}

func (c pathCmd) Run(ctx context.Context, store *assets.Store) error {
	path, err := store.Path(ctx, c.Name)
	if err != nil {
		return err
	}
	_, err = fmt.Println(path)
	return err
}

type verifyCmd struct{ selection }

func (c verifyCmd) Run(store *assets.Store) error {
	names, err := c.names(store)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range names {
		err := store.Check(name)
		if err == nil {
			fmt.Printf("ok  %s\n", name)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

type listCmd struct{}

func (listCmd) Run(store *assets.Store) error {
	list, err := store.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tKIND\tPLATFORM\tLICENCE\tPRESENT")
	for _, a := range list {
		platform, present := a.Platform, "no"
		if platform == "" {
			platform = "any"
		}
		if a.Present {
			present = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, a.Version, a.Kind, platform, a.Licence, present)
	}
	return w.Flush()
}

func main() {
	k := kong.Parse(new(cli), kong.Name("assets"),
		kong.Description("Fetches, makes and verifies the native libraries and models that assets.lock pins."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Progress goes to stderr: the stdout of `assets path` is the path alone.
	store, err := assets.Open(".", assets.NewProgress(os.Stderr))
	k.FatalIfErrorf(err)
	k.BindTo(ctx, (*context.Context)(nil))
	k.FatalIfErrorf(k.Run(store))
}
