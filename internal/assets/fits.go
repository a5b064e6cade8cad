package assets

import (
	"fmt"
	"os"

	"golang.org/x/mod/modfile"
)

// checkBindings refuses a library whose binding in go.mod is of another version
// than the pair was proven with. A binding checks at most the version of the
// library's API table, and a struct that has moved by a field is no error at
// all but wrong numbers, so only pairs that were seen to work are let through.
func (l *Lock) checkBindings(gomod string) error {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(gomod, data, nil)
	if err != nil {
		return err
	}
	required := map[string]Version{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = Version(r.Mod.Version)
	}
	replaced := map[string]bool{}
	for _, r := range mod.Replace {
		replaced[r.Old.Path] = true
	}
	for i := range l.Assets {
		a := &l.Assets[i]
		if a.Fits == nil {
			continue
		}
		version, used := required[a.Fits.Module]
		switch {
		case !used:
			// No binding, no pair.
		case replaced[a.Fits.Module]:
			return fmt.Errorf("%s: %s %s is known to fit %s %s, but go.mod replaces that module: "+
				"drop the replacement, or prove the pair and name the new module in fits",
				LockName, a.Name, a.Version, a.Fits.Module, a.Fits.Version)
		case version != a.Fits.Version:
			return fmt.Errorf("%s: %s %s is known to fit %s %s, but go.mod requires %s: "+
				"prove the new pair with `make certify` and change fits, or go back to %s",
				LockName, a.Name, a.Version, a.Fits.Module, a.Fits.Version, version, a.Fits.Version)
		}
	}
	return nil
}
