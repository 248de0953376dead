package ncu

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// attackFiles are one file of each kind, small enough to be cut at every byte.
func attackFiles(t *testing.T) map[string]string {
	t.Helper()
	rule := launch0 + `,"SpeedOfLight","","","","Bottleneck","OPT","Say ""more"", please","local","5.818"`
	files := map[string]string{
		"rules": text("==PROF== Connected to process 1", ruleHead, launch0+metric+",", rule, launch1+metric+","),
		"body":  text(bodyHead, launch0+bodyMetric, inset, `"0","NVIDIA H200","0"`, launch0+bodyTable, launch1+roofline),
		"raw":   text(rawHead, rawUnit, rawLine, strings.Replace(rawLine, `"0"`, `"3"`, 1)),
	}
	for name, path := range map[string]string{"metrics": "metrics.csv", "units": "units-auto.csv", "numa": "details-numa.csv"} {
		b, err := os.ReadFile("testdata/h200-2025.3.1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		const most = 4 << 10 // bytes
		files[name] = string(b)
		if end := strings.LastIndexByte(files[name][:min(len(b), most)], '\n'); len(b) > most && name != "units" {
			files[name] = files[name][:end+1]
		}
	}
	return files
}

// figures are the values of a report by launch and name.
type figures map[string][]Value

func figuresOf(t *testing.T, rep *Report) figures {
	t.Helper()
	out := figures{}
	for _, l := range rep.Launches {
		id := fmt.Sprintf("%d %d %s %v %v", l.Process, l.ID, l.Kernel, l.Block, l.Grid)
		err := l.values.each(func(name string, c cell) error {
			v, err := l.parse(name, c, true)
			if v.Kind == Number {
				out[id+" "+name] = append(out[id+" "+name], v)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.Rules {
			name := id + " rule " + r.Section + r.Name + r.Type
			out[name] = append(out[name], r.Speedup)
		}
	}
	return out
}

// lie returns a number of f that truth does not have.
func (f figures) lie(truth figures) string {
	for name, values := range f {
		for _, v := range values {
			if !slices.Contains(truth[name], v) {
				return fmt.Sprintf("%s = %s", name, show(v))
			}
		}
	}
	return ""
}

func readString(s string) (*Report, error) { return Read(strings.NewReader(s), "t.csv") }

// TestCutAnywhere: a file that is cut off is refused, or every number in it is
// one of the whole file.
func TestCutAnywhere(t *testing.T) {
	for name, whole := range attackFiles(t) {
		rep, err := readString(whole)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		truth := figuresOf(t, rep)
		for cut := range len(whole) {
			rep, err := readString(whole[:cut])
			if err != nil {
				continue
			}
			if lie := figuresOf(t, rep).lie(truth); lie != "" {
				t.Errorf("%s cut at byte %d: %s", name, cut, lie)
			}
			if tail := whole[:cut]; !strings.HasSuffix(tail, "\n") && !strings.HasSuffix(tail, `"`) && !strings.HasSuffix(tail, `",`) && strings.Contains(tail[strings.LastIndexByte(tail, '\n')+1:], `"`) {
				t.Errorf("%s cut at byte %d, in %q: accepted", name, cut, tail[max(0, cut-40):])
			}
		}
	}
}

var (
	fieldText     = regexp.MustCompile(`"[^"\n]*"`)
	numberText    = regexp.MustCompile(`"\d[\d.,]*"`)
	strangeNumber = []string{"NaN", "-nan", "inf", "1e309", "0x10", "1_000", "１２", "--5", "+5", "1 2", ".5", "5.", "1,5,0", "∞", "1.234", "9e99999999999", "1\x00", "", "1;2", "1/2", "(1)", "1 (2", "12%", "1e5e5"}
	noiseLines    = []string{"==PROF== Disconnected from process 9\n", "step 1, loss 2.5\n", "\n", "\r\n", "ptxas info    : Used 4 registers\n", "\x00", "==WARNING== x\n"}
)

// edits of a file. Those that leave the numbers alone must leave them equal or
// be refused; those that put something else in a number's place must not make
// another number of the metric's.
var edits = map[string]func(rng *rand.Rand, s string) string{
	"CRLF":       func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"CR":         func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"mark":       func(_ *rand.Rand, s string) string { return "\ufeff" + s },
	"marks":      func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\n", "\n\ufeff") },
	"line lost":  func(rng *rand.Rand, s string) string { return editLine(rng, s, func(string) string { return "" }) },
	"line twice": func(rng *rand.Rand, s string) string { return editLine(rng, s, func(l string) string { return l + l }) },
	"line end lost": func(rng *rand.Rand, s string) string {
		return editLine(rng, s, func(l string) string { return strings.TrimSuffix(l, "\n") })
	},
	"lines swapped":  swapLines,
	"byte of syntax": dropMark,
	"output inside": func(rng *rand.Rand, s string) string {
		i := rng.IntN(len(s))
		for i > 0 && i < len(s) && isDigit(s[i-1]) && isDigit(s[i]) || i < len(s) && strings.IndexByte(".,", s[i]) >= 0 {
			i++
		}
		return s[:i] + noiseLines[rng.IntN(len(noiseLines))] + s[i:]
	},
	"column twice": func(rng *rand.Rand, s string) string {
		return editColumn(rng, s, func(f []string, i int) []string { return slices.Insert(f, i, f[i]) })
	},
	"column lost": func(rng *rand.Rand, s string) string {
		return editColumn(rng, s, func(f []string, i int) []string { return slices.Delete(f, i, i+1) })
	},
	"header swapped": func(rng *rand.Rand, s string) string { // the rows stay
		head := strings.Index(s, `"ID"`)
		end := head + strings.IndexByte(s[head:], '\n')
		f := fieldText.FindAllString(s[head:end], -1)
		if !slices.Contains(f, `"Metric Name"`) {
			return s // the names of metrics in another order
		}
		i := 11 + rng.IntN(len(f)-12)
		f[i], f[i+1] = f[i+1], f[i]
		return s[:head] + strings.Join(f, ",") + s[end:]
	},
	"value and unit": func(rng *rand.Rand, s string) string {
		head := s[strings.Index(s, `"ID"`):]
		unit := slices.Index(fieldText.FindAllString(head[:strings.IndexByte(head, '\n')], -1), `"Metric Unit"`)
		if unit < 0 {
			return s
		}
		return editLine(rng, s, func(l string) string {
			f := fieldText.FindAllString(strings.TrimSuffix(l, "\n"), -1)
			if len(f) < unit+2 || f[unit+1] == `""` {
				return l
			}
			f[unit], f[unit+1] = f[unit+1], f[unit]
			return strings.Join(f, ",") + "\n"
		})
	},
	"strange number": func(rng *rand.Rand, s string) string {
		at := numberText.FindAllStringIndex(s, -1)
		m := at[rng.IntN(len(at))]
		return s[:m[0]+1] + strangeNumber[rng.IntN(len(strangeNumber))] + s[m[1]-1:]
	},
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func editLine(rng *rand.Rand, s string, change func(string) string) string {
	lines := slices.Collect(strings.Lines(s))
	i := rng.IntN(len(lines))
	lines[i] = change(lines[i])
	return strings.Join(lines, "")
}

func swapLines(rng *rand.Rand, s string) string {
	lines := slices.Collect(strings.Lines(s))
	i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
	lines[i], lines[j] = lines[j], lines[i]
	return strings.Join(lines, "")
}

// dropMark takes out a quote, or a comma between two fields.
func dropMark(rng *rand.Rand, s string) string {
	for {
		if i := 1 + rng.IntN(len(s)-1); s[i] == '"' || s[i] == ',' && s[i-1] == '"' {
			return s[:i] + s[i+1:]
		}
	}
}

// editColumn changes one column of every row.
func editColumn(rng *rand.Rand, s string, change func(f []string, i int) []string) string {
	column := rng.IntN(15)
	var out strings.Builder
	for line := range strings.Lines(s) {
		f := fieldText.FindAllString(line, -1)
		if line[0] == '"' && len(f) > column && strings.Join(f, ",") == strings.TrimSuffix(strings.TrimRight(line, "\n"), ",") {
			tail := line[len(strings.Join(f, ",")):]
			line = strings.Join(change(f, column), ",") + tail
		}
		out.WriteString(line)
	}
	return out.String()
}

// TestEdits: after an accident a file is refused, or every number in it is one
// of the file before, of the same launch and metric.
func TestEdits(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 4))
	refused, accepted := map[string]int{}, map[string]int{}
	for name, whole := range attackFiles(t) {
		rep, err := readString(whole)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		truth := figuresOf(t, rep)
		for what, edit := range edits {
			for range 60 {
				edited := edit(rng, whole)
				rep, err := readString(edited)
				if err != nil {
					refused[what]++
					continue
				}
				accepted[what]++
				valueLaws(t, rep)
				figures := figuresOf(t, rep)
				if what == "strange number" { // of a rule's speedup, some are plain ones
					maps.DeleteFunc(figures, func(name string, _ []Value) bool { return strings.Contains(name, " rule ") })
				}
				if lie := figures.lie(truth); lie != "" {
					t.Errorf("seed %d: %s, %s: %s\n%s", seed, name, what, lie, firstEdit(whole, edited))
				}
			}
		}
	}
	t.Logf("refused %v\naccepted %v", refused, accepted)
	if refused["CRLF"]+refused["mark"]+refused["marks"] > 0 {
		t.Error("a file is refused for its line ends or its mark")
	}
}

func firstEdit(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%s became %s", strconv.Quote(clip(a[max(0, i-20):], 120)), strconv.Quote(clip(b[max(0, i-20):], 120)))
}

// TestReportEdits: no change of a byte makes the reader of reports do anything
// but read or refuse.
func TestReportEdits(t *testing.T) {
	good := madeUpReport()
	for i := range good {
		for _, c := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := bytes.Clone(good)
			b[i] = c
			rep, err := readBytes(b)
			if err != nil {
				refusalLaw(t, rep, err)
				continue
			}
			valueLaws(t, rep)
		}
	}
}
