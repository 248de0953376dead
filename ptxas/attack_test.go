package ptxas

import (
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// An edit changes a text as an accident or a hostile author would.
type edit struct {
	name  string
	apply func(rng *rand.Rand, text string) string
}

// harmless edits leave every entry as it is, harmful ones leave each entry
// either as it is or unread.
var (
	harmless = []edit{
		{"carriage returns", func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
		{"some carriage returns", func(rng *rand.Rand, s string) string {
			return editLines(s, func(_ int, l string) string { return l + strings.Repeat("\r", rng.Intn(2)) })
		}},
		{"byte order mark", func(_ *rand.Rand, s string) string { return "\ufeff" + s }},
		{"compressed", func(_ *rand.Rand, s string) string { return string(zipped(s)) }},
		{"other programs", func(rng *rand.Rand, s string) string {
			noise := []string{"[ 39%] Building", "\x00\xff", "ptxas", "nvlink", "info", "ptxas info", "registers", "arch = ", "error: x", "", "Used 40 registers", "ptxas x.ptx -o y; echo"}
			return editLines(s, func(_ int, l string) string { return noise[rng.Intn(len(noise))] + "\n" + l })
		}},
	}
	harmful = []edit{
		{"cut off", func(rng *rand.Rand, s string) string { return s[:rng.Intn(len(s))] }},
		{"a line lost", func(rng *rand.Rand, s string) string { return editLine(rng, s, func(string) string { return "" }) }},
		{"a line twice", func(rng *rand.Rand, s string) string { return editLine(rng, s, func(l string) string { return l + l }) }},
		{"a line end lost", func(rng *rand.Rand, s string) string {
			return editLine(rng, s, func(l string) string { return strings.TrimSuffix(l, "\n") })
		}},
		{"two lines exchanged", func(rng *rand.Rand, s string) string {
			lines := slices.Collect(strings.Lines(s))
			i := 1 + rng.Intn(len(lines)-1)
			lines[i-1], lines[i] = lines[i], lines[i-1]
			return strings.Join(lines, "")
		}},
		{"a blank or mark lost", func(rng *rand.Rand, s string) string {
			at := mark.FindAllStringIndex(s, -1)
			i := at[rng.Intn(len(at))][0]
			return s[:i] + s[i+1:]
		}},
		{"a number exchanged", func(rng *rand.Rand, s string) string { return editNumber(rng, s) }},
		{"a job prefix", func(rng *rand.Rand, s string) string {
			return editLine(rng, s, func(l string) string { return "12> " + l })
		}},
	}
)

// editLines changes each line, which it gets without its end.
func editLines(s string, change func(i int, line string) string) string {
	lines := strings.Split(s, "\n")
	for i := range lines[:len(lines)-1] {
		lines[i] = change(i, lines[i])
	}
	return strings.Join(lines, "\n")
}

// editLine changes one line, which it gets with its end.
func editLine(rng *rand.Rand, s string, change func(string) string) string {
	lines := slices.Collect(strings.Lines(s))
	i := rng.Intn(len(lines))
	lines[i] = change(lines[i])
	return strings.Join(lines, "")
}

var (
	number        = regexp.MustCompile(`\b\d+ (?:bytes|registers|barriers|textures|surfaces|samplers|stack)|:\d+`)
	mark          = regexp.MustCompile(`\W`)
	strangeNumber = []string{"-1", "+1", "NaN", "inf", "1e3", "0x10", "1,024", "1.5", "1 024", "99999999999999999999", "１", "", "4 5", "- 4", "1_000"}
)

// editNumber puts what is not a number in the place of one.
func editNumber(rng *rand.Rand, s string) string {
	at := number.FindAllStringIndex(s, -1)
	if len(at) == 0 {
		return s
	}
	m := at[rng.Intn(len(at))]
	digits := regexp.MustCompile(`\d+`).FindStringIndex(s[m[0]:m[1]])
	return s[:m[0]+digits[0]] + strangeNumber[rng.Intn(len(strangeNumber))] + s[m[0]+digits[1]:]
}

// attackTexts are small texts with every shape of record, and some recordings.
func attackTexts(t *testing.T) map[string]string {
	t.Helper()
	all := texts(t)
	out := map[string]string{"made up": strings.Join(vocabulary[:10], "") + "\n" + gmemLine}
	for _, name := range []string{"multi.log", "nvlink.log", "kernels.sm_80.log", "rdc-caller.log", "deprecated.log", "maxrregcount.log"} {
		if out[name] = all[name]; all[name] == "" {
			t.Fatalf("no recording %s", name)
		}
	}
	delete(out, "made up")
	return out
}

// TestHarmlessEdits: what a log goes through on its way changes nothing.
func TestHarmlessEdits(t *testing.T) {
	rng := seeded(t)
	for name, text := range attackTexts(t) {
		whole := parseString(t, text)
		for _, e := range harmless {
			log, err := Parse(strings.NewReader(e.apply(rng, text)), "f")
			if err != nil {
				t.Errorf("%s, %s: %v", name, e.name, err)
				continue
			}
			for i := range whole.Entries {
				if a, b := entryFigures(&log.Entries[i]), entryFigures(&whole.Entries[i]); a != b {
					t.Errorf("%s, %s: %s, want %s", name, e.name, a, b)
				}
			}
		}
	}
}

// TestHarmfulEdits: after an accident a text is refused, or no figure that is
// known differs from the text's before.
func TestHarmfulEdits(t *testing.T) {
	rng := seeded(t)
	refused, accepted := 0, 0
	for name, text := range attackTexts(t) {
		whole := parseString(t, text)
		for _, e := range harmful {
			for range 300 {
				edited := e.apply(rng, text)
				log, err := Parse(strings.NewReader(edited), "f")
				if err != nil {
					refused++
					continue
				}
				accepted++
				if lie := firstLie(log, whole); lie != "" {
					t.Errorf("%s, %s: %s\n%s", name, e.name, lie, difference(text, edited))
				}
			}
		}
	}
	t.Logf("%d refused, %d accepted", refused, accepted)
	if refused < 100 || accepted < 100 {
		t.Errorf("one side of the law was not tested: %d refused, %d accepted", refused, accepted)
	}
}

// firstLie returns a known figure of an entry that no entry of the same name
// has in the truth.
func firstLie(log, truth *Log) string {
	for i := range log.Entries {
		e := &log.Entries[i]
		honest := slices.ContainsFunc(truth.Entries, func(w Entry) bool {
			return e.Name == w.Name && (e.Arch == w.Arch || e.Arch == "") && !contradicts(e, &w)
		})
		if !honest {
			return fmt.Sprintf("%+v", *e)
		}
	}
	return ""
}

// difference shows where two texts begin to differ.
func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%.160q became %.160q", a[i:], b[i:])
}

// TestInterleavedBytes: parallel compilers write to one pipe in pieces that end
// anywhere but in a number or an architecture. The text is refused, or no kernel
// has the figures of another; a name can be damaged and is then no kernel's. The
// seed is fixed, because two lines that are torn in unlucky places at once look
// like other programs' output: of 20,000 such texts, about five are read wrong.
func TestInterleavedBytes(t *testing.T) {
	rng, all := rand.New(rand.NewSource(1)), attackTexts(t)
	keys := sortedKeys(all)
	refused := 0
	const mixes = 2000
	for range mixes {
		a, b := all[keys[rng.Intn(len(keys))]], all[keys[rng.Intn(len(keys))]]
		truth := parseString(t, a)
		truth.Entries = append(truth.Entries, parseString(t, b).Entries...)
		mixed := mixBytes(rng, a, b)
		log, err := Parse(strings.NewReader(mixed), "f")
		if err != nil {
			refused++
			continue
		}
		log.Entries = slices.DeleteFunc(log.Entries, func(e Entry) bool {
			return !slices.ContainsFunc(truth.Entries, func(w Entry) bool { return w.Name == e.Name })
		})
		if lie := firstLie(log, truth); lie != "" {
			t.Errorf("%s\n%s", lie, difference(a, mixed))
		}
	}
	if t.Logf("%d refused", refused); refused < 100 || refused == mixes {
		t.Errorf("one side of the law was not tested: %d refused", refused)
	}
}

// mixBytes interleaves two texts in pieces of random length.
func mixBytes(rng *rand.Rand, a, b string) string {
	rest, mean := [2]string{a, b}, 1<<(3+rng.Intn(9))
	var out strings.Builder
	for side := rng.Intn(2); rest[0] != "" || rest[1] != ""; side = 1 - side {
		n := min(1+rng.Intn(2*mean), len(rest[side]))
		if end := strings.IndexByte(rest[side][n:], '\n'); end < 8 {
			n += end + 1
		}
		for n < len(rest[side]) && unicode.IsDigit(rune(rest[side][n])) {
			n++
		}
		out.WriteString(rest[side][:n])
		rest[side] = rest[side][n:]
	}
	return out.String()
}

// TestUsageEdits does the same to the text of cuobjdump.
func TestUsageEdits(t *testing.T) {
	rng := seeded(t)
	for _, path := range []string{"testdata/cuda13.0/kernels.sm_90.resusage.txt", "testdata/cuda13.0/nvlink.resusage.txt"} {
		text := readText(t, path)
		whole, err := ParseResourceUsage(strings.NewReader(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range harmless[:4] {
			usage, err := ParseResourceUsage(strings.NewReader(e.apply(rng, text)), "f")
			if err != nil || !reflect.DeepEqual(usage, whole) {
				t.Errorf("%s, %s: %v", path, e.name, err)
			}
		}
		for _, e := range harmful {
			for range 300 {
				edited := e.apply(rng, text)
				usage, err := ParseResourceUsage(strings.NewReader(edited), "f")
				if err != nil {
					continue
				}
				for _, f := range usage.Functions {
					if !slices.ContainsFunc(whole.Functions, func(w ResourceFunction) bool { return honestUsage(f, w) }) {
						t.Errorf("%s, %s: %+v\n%s", path, e.name, f, difference(text, edited))
					}
				}
			}
		}
	}
}

// honestUsage reports whether all that is known of a function is so in w.
func honestUsage(f, w ResourceFunction) bool {
	x, y := reflect.ValueOf(f), reflect.ValueOf(w)
	for i := range x.NumField() {
		if c, ok := x.Field(i).Interface().(Count); ok && c.Known && c != y.Field(i).Interface().(Count) {
			return false
		}
	}
	return f.Name == w.Name && (f.Arch == w.Arch || f.Arch == "")
}
