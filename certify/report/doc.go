// Package report shows what certify found: a table for people at a terminal,
// JUnit XML for continuous integration, result.json for programs.
package report
