package ncu

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// dump prints everything that was read, and what follows from it for metrics.
func dump(t testing.TB, rep *Report, metrics []Metric) (string, tally) {
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
		for _, m := range metrics {
			if v := derived(t, l, m); v.Kind == Number {
				fmt.Fprintf(&b, "\t%s = %s\n", m.Name, show(v))
			}
		}
	}
	return b.String(), n
}

func derived(t testing.TB, l *Launch, m Metric) Value {
	t.Helper()
	v, err := Derive("", l, m.Name)
	if err != nil {
		t.Fatal(err)
	}
	return v
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
		got, _ := dump(t, rep, Metrics())
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

// recordings are those whose digests are kept, with the copy that lies here.
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

// recording is the path of a recording, and false where it is neither here nor in
// GATE_CORPUS.
func recording(t testing.TB, name string) (path string, there bool) {
	t.Helper()
	switch copied, known := recordings[name]; {
	case !known:
		t.Fatalf("%s is not listed", name)
	case copied != "":
		return filepath.Join("testdata", copied), true
	case os.Getenv("GATE_CORPUS") == "":
		return "", false
	}
	return corpus(t, name), true
}

// TestDigests compares counts and a digest of everything that was read, which no
// metric changes. A recording that is neither here nor in GATE_CORPUS is passed over,
// and keeps its line.
func TestDigests(t *testing.T) {
	want := linesOf(t, digestsFile)
	var out strings.Builder
	out.WriteString("recording\tlaunches\tnumbers\twords\tmissing\trules\tsha256\n")
	checked := 0
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		path, there := recording(t, name)
		if !there {
			out.WriteString(want[name] + "\n")
			continue
		}
		rep, err := readPath(t, path)
		if err != nil {
			t.Error(err)
			continue
		}
		text, n := dump(t, rep, nil)
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
	rewrite(t, digestsFile, out.String())
}

// TestMetricDigests compares a digest of each metric's figures in the recordings that
// lie here, and one of those in the others where GATE_CORPUS names them. A metric that
// is new changes no line of another one; without the others, its second digest is "-"
// until somebody who has them writes it.
func TestMetricDigests(t *testing.T) {
	here, elsewhere := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		path, there := recording(t, name)
		if !there {
			continue
		}
		rep, err := readPath(t, path)
		if err != nil {
			t.Fatal(err)
		}
		figures := here
		if recordings[name] == "" {
			figures = elsewhere
		}
		for _, l := range rep.Launches {
			for _, m := range Metrics() {
				figures[m.Name] += fmt.Sprintf("%s %d %s\n", name, l.ID, figure(derived(t, l, m)))
			}
		}
	}
	want := linesOf(t, metricsFile)
	var out strings.Builder
	out.WriteString("metric\there\telsewhere\n")
	for _, m := range Metrics() {
		line := metricLine(m.Name, here[m.Name], elsewhere[m.Name], want[m.Name])
		out.WriteString(line + "\n")
		if !*update && line != want[m.Name] {
			t.Errorf("%s\n\thave %s\n\twant %s", m.Name, line, want[m.Name])
		}
	}
	if len(here) != len(Metrics()) {
		t.Errorf("%d of %d metrics are looked at", len(here), len(Metrics()))
	}
	rewrite(t, metricsFile, out.String())
}

// figure is a value without the words for what is missing.
func figure(v Value) string {
	if v.Kind == Number {
		return show(v)
	}
	return v.Kind.String()
}

// metricLine is a line of the table of metrics. The digest over recordings that are
// not to be had is that of the line before.
func metricLine(name, here, elsewhere, before string) string {
	second := "-"
	if f := strings.Split(before, "\t"); len(f) == 3 {
		second = f[2]
	}
	if elsewhere != "" {
		second = fmt.Sprintf("%x", sha256.Sum256([]byte(elsewhere)))
	}
	return fmt.Sprintf("%s\t%x\t%s", name, sha256.Sum256([]byte(here)), second)
}

// TestMetricsAreAddedWithoutTheCorpus: the line of a metric that is new needs nothing
// but what lies here, and what was written of the other recordings stays.
func TestMetricsAreAddedWithoutTheCorpus(t *testing.T) {
	fresh := metricLine("ncu.new", "1 %\n", "", "")
	if !strings.HasSuffix(fresh, "\t-") || metricLine("ncu.new", "1 %\n", "", fresh) != fresh {
		t.Errorf("a new metric: %q", fresh)
	}
	whole := metricLine("ncu.new", "1 %\n", "2 %\n", fresh)
	if whole == fresh || metricLine("ncu.new", "1 %\n", "", whole) != whole {
		t.Errorf("without the other recordings: %q", whole)
	}
	for _, changed := range []string{metricLine("ncu.new", "3 %\n", "2 %\n", whole), metricLine("ncu.new", "1 %\n", "3 %\n", whole)} {
		if changed == whole {
			t.Errorf("another figure has the line %q", whole)
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

const (
	digestsFile = "testdata/digests.tsv"
	metricsFile = "testdata/metrics.tsv"
)

// linesOf are the lines of a table by their first field.
func linesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	m := make(map[string]string)
	b, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, _, _ := strings.Cut(line, "\t")
		m[name] = line
	}
	return m
}

// rewrite writes a table where that is asked for.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if !*update {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
