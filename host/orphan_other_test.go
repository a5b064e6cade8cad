//go:build darwin

package host_test

func moduleMain() {}
