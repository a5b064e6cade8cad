package gate

// Control is a run that was wrong on purpose.
type Control struct {
	Name    string  `json:"name"`              // as in suite.yaml
	Held    bool    `json:"held"`              // it was caught
	Refused string  `json:"refused,omitempty"` // the worker's own refusal, where that is how
	Hidden  string  `json:"hidden,omitempty"`  // why the fault cannot show here: it was not run
	Checks  []Check `json:"checks"`            // the gates that it met
}

// NewControl judges a control by the gates that it met: it holds where one of
// them failed. A control that passed them all shows that they cannot tell right
// from wrong, so the run that they judged is void.
func NewControl(name string, checks []Check) Control {
	return Control{Name: name, Checks: checks, Held: len(checks) > 0 && !Passed(checks)}
}

// RefusedControl is a control that the worker would not compute: who asks for
// the wrong thing is told so, which is as good.
func RefusedControl(name string, refusal error) Control {
	return Control{Name: name, Held: true, Refused: refusal.Error(), Checks: []Check{}}
}

// HiddenControl is a control whose fault cannot show on this machine, and that
// was therefore not run. It says so, and makes no run void.
func HiddenControl(name, why string) Control {
	return Control{Name: name, Hidden: why, Checks: []Check{}}
}

// Void reports whether the control shows that the gates cannot tell right from
// wrong: it was run and not caught.
func (c Control) Void() bool { return !c.Held && c.Hidden == "" }
