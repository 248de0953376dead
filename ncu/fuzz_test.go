package ncu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const maxSeed = 24 << 10 // bytes; longer recordings are cut at a line

// csvSeeds returns the recordings of the repository and the shapes of the
// reader's tests.
func csvSeeds(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("testdata/*/*.csv")
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d recordings, %v", len(paths), err)
	}
	var seeds [][]byte
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) > maxSeed {
			b = b[:bytes.LastIndexByte(b[:maxSeed], '\n')+1]
		}
		seeds = append(seeds, b)
	}
	rule := launch0 + `,"SpeedOfLight","","","","Bottleneck","OPT","Say ""more"", please","local","5.818"`
	for _, s := range []string{
		text("probe, x", longHead, launch0+metric, launch1+metric),
		text(ruleHead, launch0+metric+",", rule, launch1+metric+","),
		text(rawHead, rawUnit, rawLine, strings.Replace(rawLine, `"0"`, `"3"`, 1)),
		text(rawHead, rawUnit, launch0+`,"1,234.50 (1: 2; 3: 4)","n/a"`),
		text("==WARNING== No kernels were profiled."),
		text("==ERROR== ERR_NVGPUCTRPERM - x"),
	} {
		seeds = append(seeds, []byte(s), zipped([]byte(s)), utf16Bytes(s, binary.LittleEndian, true))
	}
	return seeds
}

// Run the targets with -fuzzminimizetime=10x: coverage varies a little from run
// to run, and by default each new input is minimised for a minute.

// FuzzRead holds the laws of the CSV reader: a refusal has a known type and no
// result; streaming gives the same; program output between lines, the kind of
// line end and gzip change nothing; two files in a row give the launches of both.
func FuzzRead(f *testing.F) {
	for _, s := range csvSeeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		rep, err := Read(bytes.NewReader(in), "f.csv")
		if err != nil {
			refusalLaw(t, rep, err)
			return
		}
		valueLaws(t, rep)
		want := fingerprint(t, rep)
		streamLaw(t, in, want)
		if len(in) < 2 || in[0] == 0 || in[0] == 0x1f || in[0] >= 0xfe || in[1] == 0 {
			return // not plain text
		}
		same := func(law string, b []byte) {
			rep, err := Read(bytes.NewReader(b), "f.csv")
			if err != nil {
				t.Fatalf("%s: %v", law, err)
			}
			if got := fingerprint(t, rep); got != want {
				t.Fatalf("%s:\n%s\nwant\n%s", law, got, want)
			}
		}
		same("gzip", zipped(in))
		if noisy, ok := withNoise(in); ok {
			same("noise", noisy)
		}
		if !bytes.Contains(in, []byte("\r")) {
			same("CRLF", bytes.ReplaceAll(in, []byte("\n"), []byte("\r\n")))
		}
		twiceLaw(t, in)
	})
}

func refusalLaw(t *testing.T, rep *Report, err error) {
	t.Helper()
	var s *SyntaxError
	var e *ToolError
	if rep == nil || !errors.As(err, &s) && !errors.As(err, &e) {
		t.Fatalf("%v, %T %v", rep, err, err)
	}
	if s != nil && (s.Msg == "" || s.File == "" || s.Line < 0) || e != nil && len(e.Lines) == 0 {
		t.Fatalf("%+v %+v", s, e)
	}
}

// valueLaws: a number is finite, a word has letters, an absence has a reason,
// every name is found, and there is at least one launch.
func valueLaws(t *testing.T, rep *Report) {
	t.Helper()
	if len(rep.Launches) == 0 {
		t.Fatal("a report without launches")
	}
	for _, l := range rep.Launches {
		if l.Kernel == "" || l.Key == "" {
			t.Fatalf("launch %d has no name", l.ID)
		}
		names := l.Names()
		if !slices.IsSorted(names) {
			t.Fatalf("names %q", names)
		}
		for _, n := range names {
			v, err := l.Metric(n)
			if err != nil {
				t.Fatal(err)
			}
			bad := false
			switch v.Kind {
			case Number:
				bad = math.IsNaN(v.Number) || math.IsInf(v.Number, 0) || v.Text != "" || v.Reason != ""
			case Text:
				bad = v.Text == "" || v.Number != 0 || v.Reason != ""
			case Missing:
				bad = v.Reason == "" || v.Reason == ReasonNotCollected || v.Number != 0
			default:
				bad = true
			}
			if bad {
				t.Fatalf("%s = %+v", n, v)
			}
		}
		for _, r := range l.Rules {
			if v := r.Speedup; v.Kind == Number && (math.IsInf(v.Number, 0) || math.IsNaN(v.Number)) || v.Kind == Missing && v.Reason == "" {
				t.Fatalf("rule %s: %+v", r.Name, v)
			}
		}
		for _, m := range Metrics() {
			if v, err := Derive("9.0", l, m.Name); err != nil || v.Kind == Text || v.Kind != Number && v.Reason == "" {
				t.Fatalf("%s = %+v, %v", m.Name, v, err)
			}
		}
	}
}

// fingerprint is everything but line numbers and messages.
func fingerprint(t *testing.T, rep *Report) string {
	t.Helper()
	c := Report{}
	for _, l := range rep.Launches {
		m := *l
		m.Line = 0
		c.Launches = append(c.Launches, &m)
	}
	s, _ := dump(t, &c, Metrics())
	return s
}

func streamLaw(t *testing.T, in []byte, want string) {
	t.Helper()
	rd, rep := NewReader(bytes.NewReader(in), "f.csv"), &Report{}
	for {
		l, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("streaming: %v", err)
		}
		rep.Launches = append(rep.Launches, l)
	}
	if got := fingerprint(t, rep); got != want {
		t.Fatalf("streaming:\n%s\nwant\n%s", got, want)
	}
	if _, err := rd.Next(); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
}

// withNoise puts program output between all lines, unless one of them may be
// inside of a quoted field.
func withNoise(in []byte) ([]byte, bool) {
	var out []byte
	for line := range bytes.Lines(in) {
		if bytes.Count(line, []byte{'"'})%2 != 0 {
			return nil, false
		}
		out = append(append(out, "step 1, \"loss\" 2.5\n"...), line...)
	}
	if len(out) > 0 && out[len(out)-1] == '\n' {
		out = append(out, "done"...)
	}
	return out, true
}

// twiceLaw: what stands from the first header on, read twice in a row.
func twiceLaw(t *testing.T, in []byte) {
	t.Helper()
	i := bytes.Index(in, []byte(headerStart))
	if i < 0 || in[len(in)-1] != '\n' {
		return
	}
	in = in[i:]
	once, err := Read(bytes.NewReader(in), "f.csv")
	if err != nil {
		return // what stood in front was a table of its own
	}
	twice, err := Read(bytes.NewReader(append(bytes.Clone(in), in...)), "f.csv")
	if err != nil {
		t.Fatalf("twice: %v", err)
	}
	if got, want := fingerprint(t, twice), strings.Repeat(fingerprint(t, once), 2); got != want {
		t.Fatalf("twice:\n%s\nwant\n%s", got, want)
	}
}

// FuzzReadReport holds the laws of the .ncu-rep reader: a refusal has a known
// type and no result; a block without launches changes nothing; a report that
// is cut anywhere is refused; no byte but the first few is read twice.
func FuzzReadReport(f *testing.F) {
	good := madeUpReport()
	f.Add(good)
	f.Add(container(reportVersion, blockOf(message{}.bytes(4, message{}.text(1, "a")), nil, [][]byte{message{}.text(7, "k").bytes(13, message{}.num(1, 0))})))
	f.Add(good[:100])
	f.Add([]byte("NVR\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		count := &countingReader{r: bytes.NewReader(in)}
		rep, err := ReadReport(count, int64(len(in)), "f.ncu-rep")
		if count.n > int64(len(in)+2*len(lfsHead)) {
			t.Fatalf("%d bytes read of %d", count.n, len(in))
		}
		if err != nil {
			refusalLaw(t, rep, err)
			return
		}
		valueLaws(t, rep)
		for _, l := range rep.Launches {
			for _, n := range l.Names() {
				if _, err := l.Instances(n); err != nil {
					t.Fatalf("instances of %s: %v", n, err)
				}
			}
		}
		want := fingerprint(t, rep)
		more := append(bytes.Clone(in), blockOf(message{}.bytes(3, nil), [][]byte{[]byte("x")}, nil)...)
		if again, err := readBytes(more); err != nil || fingerprint(t, again) != want {
			t.Fatalf("with an empty block: %v", err)
		}
		if cut, err := readBytes(in[:len(in)-1]); err == nil && len(cut.Launches) >= len(rep.Launches) && in[len(in)-1] != 0 {
			t.Fatal("a report without its last byte is accepted")
		}
	})
}
