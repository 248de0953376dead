package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/checkout.txt")

// The checkout holds one case of each rule: a type that is used without its
// name, a use by a test or an experiment only, a file for other systems.
func TestCheckout(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"testdata/checkout"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	const golden = "testdata/checkout.txt"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestRunRefuses(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"a", "b"}, 2, "at most one"},
		{[]string{empty}, 3, "go list"},
	} {
		var out, errs bytes.Buffer
		if code := run(c.args, &out, &errs); code != c.code || out.Len() > 0 || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit %d with %q and %q", c.args, code, &out, &errs)
		}
	}
}
