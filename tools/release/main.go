// Command release makes what goreleaser does not, and proves what it made: the
// licences and the bill of materials of each archive, the statement of provenance,
// and that each archive runs where it lands. The Makefile calls it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Licences   licencesCmd   `cmd:"" help:"Collect the licences of everything that is linked into a release's binaries."`
	Sbom       sbomCmd       `cmd:"" help:"Write an archive's bill of materials (CycloneDX)."`
	Provenance provenanceCmd `cmd:"" help:"Write the statement of provenance (in-toto, SLSA) of what a checksum file lists."`
	Prove      proveCmd      `cmd:"" help:"Unpack every archive, inspect it, run its workers, and print a table."`
	Same       sameCmd       `cmd:"" help:"Compare the archives of two builds byte by byte."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(new(cli), kong.Name("release"), kong.UsageOnError())
	k.BindTo(ctx, (*context.Context)(nil))
	k.FatalIfErrorf(k.Run())
}
