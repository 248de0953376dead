package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlagsFirst(t *testing.T) {
	for given, want := range map[string]string{
		"":                                       "",
		"--version":                              "--version",
		"--polcy check":                          "--polcy check --",
		"nosuch a --b":                           "nosuch a --b",
		"check":                                  "check --",
		"check a --policy p b":                   "check --policy p -- a b",
		"check a --policy=p -v b":                "check --policy=p -v -- a b",
		"check a -policy p":                      "check -policy p -- a",
		"check a --no-gpu b":                     "check --no-gpu -- a b",
		"check a --policy":                       "check --policy",
		"check a --policy --verbose":             "check --policy --verbose -- a",
		"check --jobs -1":                        "check --jobs -1 --",
		"check a --unknown b":                    "check --unknown -- a b",
		"check a -- --policy p":                  "check -- a --policy p",
		"check -- -- a":                          "check -- -- a",
		"check a --policy -- b":                  "check --policy -- -- a b", // a value, as the library reads it
		"report - --format json":                 "report --format json -- -",
		"baseline list folder --format json":     "baseline list --format json -- folder",
		"baseline --help":                        "baseline --help",
		"cache clean --older 1h --evidence":      "cache clean --older 1h --evidence --",
		"cache --format json":                    "cache --format json",
		"baseline record a --store s b --no-gpu": "baseline record --store s --no-gpu -- a b",
	} {
		got := flagsFirst(newApp(io.Discard, io.Discard).Commands, strings.Fields(given))
		if strings.Join(got, " ") != want {
			t.Errorf("%q became %q, want %q", given, strings.Join(got, " "), want)
		}
	}
}
