package ptxas

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// texts are the distributed recordings that hold entries.
func texts(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range recordings(t, "testdata") {
		if !strings.HasSuffix(path, ".log") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(strings.NewReader(string(data)), path); err == nil {
			all[filepath.Base(path)] = string(data)
		}
	}
	if len(all) == 0 {
		t.Fatal("no recording with entries")
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func seeded(t *testing.T) *rand.Rand {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewSource(seed))
}

// TestMixedOutput: when the lines of two compilers are mixed, either the text is
// refused or every entry has the figures that it has unmixed.
func TestMixedOutput(t *testing.T) {
	rng, all := seeded(t), texts(t)
	keys := sortedKeys(all)
	refused, accepted := 0, 0
	for range 3000 {
		a, b := all[keys[rng.Intn(len(keys))]], all[keys[rng.Intn(len(keys))]]
		truth := map[string]int{}
		for _, s := range []string{a, b} {
			log := parseString(t, s)
			for i := range log.Entries {
				truth[entryFigures(&log.Entries[i])]++
			}
		}
		log, err := Parse(strings.NewReader(mix(rng, a, b)), "mixed")
		if err != nil {
			refused++
			continue
		}
		accepted++
		for i := range log.Entries {
			f := entryFigures(&log.Entries[i])
			if truth[f]--; truth[f] < 0 {
				t.Fatalf("an entry with the figures of another: %s", f)
			}
		}
	}
	t.Logf("%d mixed texts refused, %d read without harm", refused, accepted)
	if refused == 0 || accepted == 0 {
		t.Errorf("one side of the law was not tested: %d refused, %d accepted", refused, accepted)
	}
}

// mix interleaves two texts line by line, in runs of random length.
func mix(rng *rand.Rand, a, b string) string {
	lines := [2][]string{slices.Collect(strings.Lines(a)), slices.Collect(strings.Lines(b))}
	mean := 1 << rng.Intn(7)
	var out strings.Builder
	for side := rng.Intn(2); len(lines[0])+len(lines[1]) > 0; side = 1 - side {
		for n := 1 + rng.Intn(2*mean); n > 0 && len(lines[side]) > 0; n-- {
			out.WriteString(strings.TrimSuffix(lines[side][0], "\n") + "\n")
			lines[side] = lines[side][1:]
		}
	}
	return out.String()
}

// TestTruncated: a log cut off anywhere gives an error or entries that the whole
// log has, where nothing that became known differs.
func TestTruncated(t *testing.T) {
	for name, text := range texts(t) {
		whole := parseString(t, text)
		step := max(len(text)/400, 1)
		for cut := 0; cut < len(text); cut += step {
			log, err := Parse(strings.NewReader(text[:cut]), name)
			if err != nil {
				continue
			}
			for i := range log.Entries {
				got, want := &log.Entries[i], &whole.Entries[i]
				if got.Name != want.Name || got.Arch != want.Arch || contradicts(got, want) {
					t.Errorf("%s cut at byte %d: entry %s has\n%+v, want\n%+v", name, cut, got.Name, *got, *want)
				}
			}
		}
	}
}

// contradicts reports whether a known figure of a differs from b's.
func contradicts(a, b *Entry) bool {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		c, ok := x.Field(i).Interface().(Count)
		if ok && c.Known && c != y.Field(i).Interface().(Count) {
			return true
		}
	}
	return false
}

// checkLaws holds what must be true of Parse for any text.
func checkLaws(t *testing.T, text string) {
	t.Helper()
	log, err := Parse(strings.NewReader(text), "f")
	checkStream(t, text, log, err)
	if err != nil {
		var syntax *SyntaxError
		var none *NoEntriesError
		if log == nil || (!errors.As(err, &syntax) && !errors.As(err, &none)) {
			t.Fatalf("log %v beside error %T %v", log, err, err)
		}
		if syntax != nil && (syntax.File != "f" || syntax.Line < 1 || syntax.Msg == "") {
			t.Fatalf("error without a place: %+v", syntax)
		}
		return
	}
	if len(log.Entries) == 0 {
		t.Fatal("no entries and no error")
	}
	again, err := Parse(strings.NewReader(text), "f")
	if err != nil || render(again) != render(log) {
		t.Fatalf("the same text read twice differs: %v", err)
	}
	lines := strings.Count(text, "\n") + 1
	if strings.HasPrefix(text, "\x1f\x8b") {
		lines = math.MaxInt
	}
	checkEntries(t, log, lines)
	if !strings.HasSuffix(text, "\n") || strings.HasPrefix(text, "\x1f\x8b") {
		return
	}
	const unit = "ptxas info    : 0 bytes gmem\n"
	checkNoise(t, text, log)
	checkConcatenation(t, unit+text, unit+block)
	checkConcatenation(t, unit+block, unit+text)
}

// checkEntries holds what must be true of each result.
func checkEntries(t *testing.T, log *Log, lines int) {
	t.Helper()
	type id struct {
		source     Source
		arch, key  string
		occurrence int
	}
	seen := map[id]bool{}
	for i := range log.Entries {
		e := &log.Entries[i]
		k := id{e.Source, e.Arch, e.Key, e.Occurrence}
		if seen[k] || e.Occurrence < 1 {
			t.Fatalf("entry key %+v is not unique", k)
		}
		seen[k] = true
		if e.CalleeSpillBytes().N < 0 || e.SpillBytes().N < 0 {
			t.Fatalf("sums of entry %+v", e)
		}
		if e.Name == "" || e.Key != Key(e.Name) || Key(e.Key) != e.Key || e.Line < 1 || e.Line > lines {
			t.Fatalf("entry %+v", e)
		}
		for v, f := reflect.ValueOf(*e), 0; f < v.NumField(); f++ {
			if c, ok := v.Field(f).Interface().(Count); ok && (c.N < 0 || (!c.Known && c.N != 0)) {
				t.Fatalf("field %d of entry %+v", f, e)
			}
		}
	}
	for _, list := range [][]Diagnostic{log.Advisories, log.Warnings, log.Errors, log.Notes} {
		for _, d := range list {
			if d.Repeats < 1 || d.Kind == "" || d.Severity == "" || (d.Key != "") != (d.Function != "") {
				t.Fatalf("message %+v", d)
			}
		}
	}
}

// checkNoise: lines of other programs between the lines change nothing.
func checkNoise(t *testing.T, text string, log *Log) {
	t.Helper()
	var noisy strings.Builder
	for line := range strings.Lines(text) {
		noisy.WriteString(line)
		noisy.WriteString("[ 39%] Building CUDA object a.cu.o\n")
	}
	other, err := Parse(strings.NewReader(noisy.String()), "f")
	if err != nil {
		t.Fatalf("with noise: %v", err)
	}
	for i := range log.Entries {
		if a, b := entryFigures(&log.Entries[i]), entryFigures(&other.Entries[i]); a != b {
			t.Fatalf("with noise: %s became %s", a, b)
		}
	}
	if len(other.Entries) != len(log.Entries) || len(other.Warnings) != len(log.Warnings) || len(other.Advisories) != len(log.Advisories) {
		t.Fatal("with noise: other records")
	}
}

// checkConcatenation: two texts that each begin with a unit, read as one, have
// the entries of both.
func checkConcatenation(t *testing.T, a, b string) {
	t.Helper()
	first, errA := Parse(strings.NewReader(a), "a")
	second, errB := Parse(strings.NewReader(b), "b")
	both, err := Parse(strings.NewReader(a+b), "f")
	if errA != nil || errB != nil {
		return
	}
	if err != nil {
		t.Fatalf("concatenation: %v", err)
	}
	var parts []string
	for _, log := range []*Log{first, second} {
		for i := range log.Entries {
			e := &log.Entries[i]
			parts = append(parts, entryFigures(e)+names(e.Callees)+"|"+names(e.UnitFunctions))
		}
	}
	for i := range both.Entries {
		e := &both.Entries[i]
		if got := entryFigures(e) + names(e.Callees) + "|" + names(e.UnitFunctions); i >= len(parts) || got != parts[i] {
			t.Fatalf("concatenation: entry %d is %s", i, got)
		}
	}
	if len(both.Entries) != len(parts) || both.Units != first.Units+second.Units {
		t.Fatalf("concatenation: %d entries of %d", len(both.Entries), len(parts))
	}
}

func TestLawsOnRecordings(t *testing.T) {
	for name, text := range texts(t) {
		t.Run(name, func(t *testing.T) { checkLaws(t, text) })
	}
}

// TestNoiseCostsNoMemory: what is kept does not grow with the text around it.
func TestNoiseCostsNoMemory(t *testing.T) {
	noise := strings.Repeat("[ 39%] Building CUDA object src/a.cu.o\n", 1000)
	small := testing.AllocsPerRun(5, func() { parseString(t, block+noise) })
	large := testing.AllocsPerRun(5, func() { parseString(t, block+strings.Repeat(noise, 50)) })
	if large > small+2 { // the test's own string
		t.Errorf("%v allocations with 1,000 lines of noise, %v with 50,000", small, large)
	}
}

// seeds gives a fuzz target every recording of a kind.
func seeds(f *testing.F, suffix string) {
	dirs := []string{"testdata"}
	if root := os.Getenv("GATE_CORPUS"); root != "" {
		dirs = append(dirs, filepath.Join(root, "ptxas"))
	}
	n := 0
	for _, dir := range dirs {
		for _, path := range recordings(f, dir) {
			if !strings.HasSuffix(path, suffix) {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data))
			f.Add(string(zipped(string(data))))
			n++
		}
	}
	if n == 0 {
		f.Fatal("no seeds")
	}
}

func FuzzParse(f *testing.F) {
	seeds(f, ".log")
	f.Fuzz(func(t *testing.T, text string) { checkLaws(t, text) })
}

// vocabulary are lines from which FuzzRecords composes texts, so that it reaches
// orders of records that random bytes do not.
var vocabulary = []string{
	gmemLine, entryLine, propsLine, frameLine, usedLine, timeLine,
	strings.Replace(entryLine, "'k'", "'other'", 1), strings.Replace(propsLine, "for k", "for other", 1),
	strings.Replace(entryLine, "sm_90", "sm_80", 1), strings.Replace(propsLine, "for k", "for f$83", 1),
	"ptxas info    : Used 255 registers, 96 bytes cumulative stack size, 7 bytes tmem, 388 bytes cmem[0]\n",
	"nvlink info    : 4 bytes gmem (target: sm_80)\n",
	"nvlink info    : Function properties for 'k': (target: sm_80)\n",
	"nvlink info    : used 8 registers, 0 stack, 0 bytes smem, 368 bytes cmem[0], 0 bytes lmem (target: sm_80)\n",
	"info    : Function properties for 'k':\n",
	"info    : used 8 registers, 0 stack, 0 bytes smem, 360 bytes cmem[0], 0 bytes lmem\n",
	"ptxas info    : (C7510) Potential Performance Loss: x in the function 'k'\n",
	"ptxas warning : Stack size for entry function 'k' cannot be statically determined\n",
	"ptxas fatal   : Ptx assembly aborted due to errors\n",
	"    16 bytes stack frame, -8 bytes spill stores, 4 bytes spill loads\n",
	"ptxas k.ptx, line 894; warning : Double is not supported. Demoting to float\n",
	"ptxas k.ptx, line 894; error   : Unknown symbol 'x'\n",
	"noise\n", block,
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte{0, 7, 3, 5, 1, 2, 3, 4, 5, 7, 3, 9, 3, 20, 11, 12, 13, 14, 15})
	f.Fuzz(func(t *testing.T, choice []byte) {
		if len(choice) > 60 {
			return
		}
		var text strings.Builder
		for _, c := range choice {
			text.WriteString(vocabulary[int(c)%len(vocabulary)])
		}
		checkLaws(t, text.String())
	})
}

func FuzzParseResourceUsage(f *testing.F) {
	seeds(f, ".txt")
	f.Fuzz(func(t *testing.T, text string) {
		usage, err := ParseResourceUsage(strings.NewReader(text), "f")
		checkUsageStream(t, text, usage, err)
		if err != nil {
			var syntax *SyntaxError
			var none *NoEntriesError
			if usage == nil || (!errors.As(err, &syntax) && !errors.As(err, &none)) {
				t.Fatalf("usage %v beside error %T %v", usage, err, err)
			}
			return
		}
		if len(usage.Functions) == 0 {
			t.Fatal("no functions and no error")
		}
		seen := map[string]bool{}
		for i := range usage.Functions {
			fn := &usage.Functions[i]
			id := fmt.Sprint(fn.Arch, " ", fn.Key, " ", fn.Occurrence)
			if seen[id] || fn.Name == "" || !fn.Registers.Known || fn.StaticSharedBytes().N < 0 {
				t.Fatalf("function %+v", fn)
			}
			seen[id] = true
		}
		if !strings.HasSuffix(text, "\n") || strings.HasPrefix(text, "\x1f\x8b") {
			return
		}
		twice, err := ParseResourceUsage(strings.NewReader(text+"\nFatbin ptx code:\n"+text), "f")
		if err != nil || len(twice.Functions) != 2*len(usage.Functions) {
			t.Fatalf("twice the text: %v", err)
		}
	})
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{
		"_ZN41_INTERNAL_04cf063f_10_kernels_cu_5fca777a43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a12table_lookupEfi",
		"__nv_static_25__3c193e71_4_a_cu__Z3locfi__Z5kstatPf", "_ZN3cub17CUB_200802_SM_90011EmptyKernelIvEEvv",
		"__omp_offloading_10305_40788d_main_l23", "f$83$1", "_ZN6thrust23THRUST_200802_SM_900_NS8cuda_cubE", "_ZN3cub21_V_300500_SM_900_12001kEv",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		key := Key(name)
		if Key(key) != key {
			t.Fatalf("Key(%q) = %q, of which Key is %q", name, key, Key(key))
		}
		if slow := normalise(name); slow != key {
			t.Fatalf("Key(%q) = %q, but %q when it is not passed over", name, key, slow)
		}
		if len(key) > len(name) || (name != "" && key == "") {
			t.Fatalf("Key(%q) = %q", name, key)
		}
	})
}
