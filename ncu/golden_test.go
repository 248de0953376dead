package ncu

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// corpus returns a path below the folder of recordings that are not kept here.
func corpus(t testing.TB, path string) string {
	t.Helper()
	dir := os.Getenv("GATE_CORPUS")
	if dir == "" {
		t.Skip("GATE_CORPUS is not set")
	}
	return filepath.Join(dir, "ncu", path)
}

func readPath(t testing.TB, path string) (*Report, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if strings.HasSuffix(path, ".ncu-rep") {
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return ReadReport(f, st.Size(), filepath.Base(path))
	}
	return Read(f, filepath.Base(path))
}

// tally counts the values of a report by kind.
type tally struct {
	launches, rules int
	kinds           [4]int
}

func (n tally) String() string {
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d", n.launches, n.kinds[Number], n.kinds[Text], n.kinds[Missing], n.rules)
}

// dump prints everything that was read.
func dump(t testing.TB, rep *Report) (string, tally) {
	t.Helper()
	var b strings.Builder
	n := tally{launches: len(rep.Launches)}
	for _, m := range rep.Messages {
		fmt.Fprintf(&b, "message %d %s %s\n", m.Line, m.Severity, m.Text)
	}
	for _, l := range rep.Launches {
		fmt.Fprintf(&b, "launch %d process %d device %d context %d stream %d cc %q block %v grid %v line %d\n\tname %q\n\tkey %q\n",
			l.ID, l.Process, l.Device, l.Context, l.Stream, l.CC, l.Block, l.Grid, l.Line, l.Kernel, l.Key)
		err := l.values.each(func(name string, c cell) error {
			v, err := l.parse(name, c, true)
			n.kinds[v.Kind]++
			fmt.Fprintf(&b, "\t%s = %s\n", name, show(v))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.Rules {
			n.rules++
			fmt.Fprintf(&b, "\trule %s %s %s %q %s %s\n", r.Section, r.Name, r.Type, r.Text, r.SpeedupType, show(r.Speedup))
		}
		for _, m := range Metrics() {
			v, err := Derive("", l, m.Name)
			if err != nil {
				t.Fatal(err)
			}
			if v.Kind == Number {
				fmt.Fprintf(&b, "\t%s = %s\n", m.Name, show(v))
			}
		}
	}
	return b.String(), n
}

func show(v Value) string {
	switch v.Kind {
	case Number:
		return strconv.FormatFloat(v.Number, 'g', -1, 64) + " " + v.Unit
	case Text:
		return strconv.Quote(v.Text)
	}
	return v.Kind.String() + ": " + v.Reason
}

// TestGolden reads every recording of the repository and compares all of it.
func TestGolden(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"testdata/*/*.csv", "testdata/*/*.csv.gz"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 8 {
		t.Fatalf("%d recordings, want 8", len(paths))
	}
	for _, path := range paths {
		rep, err := readPath(t, path)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(path) > 3 && strings.HasSuffix(path, ".gz") {
			continue // as large as all others together; TestDigests has it
		}
		got, _ := dump(t, rep)
		golden := path + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s at %q", path, golden, firstDifference(got, string(want)))
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + " / " + y[i]
		}
	}
	return "the end"
}

// recordings that are read by TestDigests, with the copy that is kept here.
var recordings = map[string]string{
	"clima-a100-baseline.details.csv":                 "",
	"clima-a100-mod.details.csv":                      "",
	"darrenlu-rtx3050-2025.1.import-2025.3.1.raw.csv": "",
	"darrenlu-rtx3050-2025.1.ncu-rep":                 "",
	"dsocr-rtx50-k0001.details.csv":                   "llm-perf-opt/rtx50-k0001.details.csv",
	"dsocr-rtx50-k0001.metrics.csv":                   "llm-perf-opt/rtx50-k0001.metrics.csv",
	"dsocr-rtx50-k0001.occupancy.csv":                 "llm-perf-opt/rtx50-k0001.occupancy.csv",
	"dsocr-rtx50-k0003.sol.csv":                       "llm-perf-opt/rtx50-k0003.sol.csv",
	"h200-2025.3.1/metrics.csv":                       "h200-2025.3.1/metrics.csv",
	"h200-2025.3.1/details-all.csv":                   "h200-2025.3.1/details-all.csv.gz",
	"h200-2025.3.1/details-numa.csv":                  "h200-2025.3.1/details-numa.csv",
	"h200-2025.3.1/raw-full.csv":                      "h200-2025.3.1/raw-full.csv.gz",
	"h200-2025.3.1/units-auto.csv":                    "h200-2025.3.1/units-auto.csv",
	"h200-2025.3.1/units-base.csv":                    "h200-2025.3.1/units-base.csv",
	"josiahls-gtx1660ti-2022.4.ncu-rep":               "",
	"lashi-4090-readWriteOffset_ca.csv":               "",
	"lashi-4090-reduceInteger.csv":                    "",
	"nsightful-copy_blocked.details.csv":              "nsightful/copy_blocked.details.csv",
	"shrey-sm86-sigmoid.metrics.csv":                  "",
	"shrey-sm86-vecmul.details.csv":                   "",
	"siglip-b200-after.raw.csv":                       "",
	"siglip-b200-baseline.raw.csv":                    "",
	"superbench-cublaslt-b200.details.csv":            "superbench/cublaslt-b200.details.csv",
}

// madeHere is the number of recordings that only this folder has.
const madeHere = 4

// TestDigests compares counts and a digest of everything that was read. A
// recording that is neither here nor in GATE_CORPUS is passed over.
func TestDigests(t *testing.T) {
	names := make([]string, 0, len(recordings))
	for n := range recordings {
		names = append(names, n)
	}
	sort.Strings(names)
	want := digests(t)
	var out strings.Builder
	out.WriteString("recording\tlaunches\tnumbers\twords\tmissing\trules\tsha256\n")
	checked := 0
	for _, name := range names {
		path := filepath.Join("testdata", recordings[name])
		if recordings[name] == "" {
			if os.Getenv("GATE_CORPUS") == "" {
				continue
			}
			path = corpus(t, name)
		}
		rep, err := readPath(t, path)
		if err != nil {
			t.Error(err)
			continue
		}
		text, n := dump(t, rep)
		line := fmt.Sprintf("%s\t%s\t%x", name, n, sha256.Sum256([]byte(text)))
		out.WriteString(line + "\n")
		checked++
		if !*update && line != want[name] {
			t.Errorf("%s\n\thave %s\n\twant %s", name, line, want[name])
		}
	}
	if checked < 8 {
		t.Errorf("checked %d recordings, want at least 8", checked)
	}
	if *update {
		if checked != len(names) {
			t.Fatal("updating digests.tsv needs GATE_CORPUS")
		}
		if err := os.WriteFile("testdata/digests.tsv", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryRecording fails on a recording that no test reads.
func TestEveryRecording(t *testing.T) {
	seen := 0
	root := corpus(t, "")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".tsv") || strings.HasSuffix(path, ".tsv.gz") {
			return err // lists of counters and labels
		}
		name, err := filepath.Rel(root, path)
		if _, known := recordings[filepath.ToSlash(name)]; !known && name != refusedRecording {
			t.Errorf("%s is read by no test", name)
		}
		seen++
		return err
	})
	if want := len(recordings) - madeHere + 1; err != nil || seen != want {
		t.Errorf("%d recordings, want %d; %v", seen, want, err)
	}
}

func digests(t *testing.T) map[string]string {
	m := make(map[string]string)
	b, err := os.ReadFile("testdata/digests.tsv")
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, _, _ := strings.Cut(line, "\t")
		m[name] = line
	}
	return m
}
