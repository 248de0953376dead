package main

import (
	"bytes"
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of gate/docs/measured.md")

const (
	recorded = "testdata/"
	document = "../../../docs/measured.md"
	closing  = "<!-- end -->\n"
)

// shown are the tables of the document, by the word in their marker.
var shown = map[string][]string{
	"aa":          {"aa.jsonl.gz"},
	"planted":     {"planted-1.jsonl.gz", "planted-2.jsonl.gz", "planted-3.jsonl.gz"},
	"epochs":      {"epochs-1.jsonl.gz", "epochs-2.jsonl.gz"},
	"calibration": {"calibration.jsonl.gz"},
	"mix":         {"mix.jsonl.gz"},
	"mix-2":       {"mix-2.jsonl.gz"},
}

// table runs the command.
func table(t *testing.T, paths ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append([]string{"table"}, paths...), &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	return out.String()
}

// TestDocument holds the tables of the document to the command's output.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for word, names := range shown {
		var paths []string
		for _, n := range names {
			paths = append(paths, recorded+n)
		}
		made := table(t, paths...)
		opening := "<!-- made by gate/internal/study/live: " + word + " -->\n"
		before, rest, ok := strings.Cut(string(text), opening)
		between, after, closed := strings.Cut(rest, closing)
		if !ok || !closed {
			t.Fatalf("%s lacks the markers of the table %s", document, word)
		}
		if *update {
			text = []byte(before + opening + made + closing + after)
		} else if between != made {
			t.Errorf("%s is not what the command writes; run go test ./gate/internal/study/live -update\n%s", document, made)
		}
	}
	if *update {
		if err := os.WriteFile(document, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryRecording fails on a recording that the document does not show.
func TestEveryRecording(t *testing.T) {
	paths, err := filepath.Glob(recorded + "*.gz")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, names := range shown {
		named += len(names)
	}
	if len(paths) != named {
		t.Errorf("%d recordings, %d are shown", len(paths), named)
	}
}

const (
	aaLine    = `{"phase":"aa","profile":"standard","run":1,"kernels":2,"red":1,"pass":1,"wall_seconds":8,"outcomes":[{"kernel":"a","group":"r11","status":"fail","pairs":12,"gpu_seconds":0.5},{"kernel":"b","group":"r02","status":"pass","pairs":8,"gpu_seconds":0.25}]}`
	truthLine = `{"phase":"truth","extra":7,"launches":32,"effect":0.0198026272961797,"error":0.0003}`
	slowLine  = `{"phase":"planted","profile":"strict","run":1,"kernels":2,"red":1,"inconclusive":1,"outcomes":[{"kernel":"a","group":"+2 %","extra":7,"status":"fail","pairs":12,"typical":0.021},{"kernel":"b","group":"+2 %","extra":7,"status":"inconclusive","pairs":120,"typical":0.019}]}`
	epochLine = `{"renew":"buffers","epoch":0,"kernel":"a","batches_ns":[5]}`
)

// written is a file of lines.
func written(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		lines []string
		row   string
	}{
		{[]string{aaLine, aaLine}, "| standard | r02 | 2 | 2 | 0 of 2 (at most 77.6 %) | 0 | 2 | 8.0 | 0.250 |  |"},
		{[]string{aaLine, aaLine}, "| standard | all | 2 | 4 | 2 of 4 (at most 90.2 %) | 0 | 2 | 10.0 | 0.375 | 4.00 |"},
		{[]string{truthLine, slowLine}, "| strict | +2 % | +2.00 ± 0.03 % | +2.00 % (sd 0.14) | 1 of 2 (at least 2.5 %) | 0 | 1 | 66.0 | — |"},
	} {
		if got := table(t, written(t, c.lines...)); !strings.Contains(got, c.row+"\n") {
			t.Errorf("want %s\n%s", c.row, got)
		}
	}
}

func TestTableRefuses(t *testing.T) {
	for _, lines := range [][]string{
		nil, {""}, {"{}"}, {"no JSON"}, {`{"phase":"other"}`}, {`{"phase":"aa"}`}, {aaLine, aaLine[:90]}, {slowLine}, {truthLine},
		{epochLine}, {epochLine, strings.Replace(epochLine, "0", "2", 1)}, {epochLine, epochLine}, {`{"schema":"gate/calibration/v1"}`},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"table", written(t, lines...)}, &out, &errs); code != 3 || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%q: exit %d with %q, want 3 and a message", lines, code, &out)
		}
	}
	var out, errs bytes.Buffer
	for args, want := range map[string]int{"table": 2, "table none.jsonl": 3, "table live_test.go": 3} {
		if code := run(context.Background(), strings.Fields(args), &out, &errs); code != want || out.Len() > 0 {
			t.Errorf("%s: exit %d, want %d", args, code, want)
		}
	}
}

func TestMostOf(t *testing.T) {
	for _, c := range []struct {
		of, all int
		want    float64
	}{{0, 300, 1 - math.Pow(0.05, 1./300)}, {0, 1, 0.95}, {5, 5, 1}, {1, 10, 0.39416}} {
		if got := mostOf(c.of, c.all); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%d of %d: at most %v, want %v", c.of, c.all, got, c.want)
		}
	}
}
