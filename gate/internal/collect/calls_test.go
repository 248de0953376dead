package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// The pilot fixes the calls of a batch for both arms of a pair, and for a
// reference by itself; batches that are too short for the timer get more.
func TestPilotFixesTheCalls(t *testing.T) {
	_, _, c, err := ask(t, `echo "$*" | grep -o -e '--calls [^ ]*' | tr '\n' ' ' >>calls; echo >>calls`, nil, twoPairs(), question(0), question(1))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), "calls"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 1+16 || lines[0] != "" {
		t.Fatalf("%d processes, the pilot was asked for %q", len(lines), lines[0])
	}
	kinds := map[string]int{}
	for _, l := range lines[1:] {
		for _, word := range strings.Fields(strings.ReplaceAll(l, "--calls", "")) {
			kinds[word]++
		}
	}
	if len(kinds) != 2 {
		t.Fatalf("asked for %v", kinds)
	}
	for word, n := range kinds {
		if want := map[bool]int{true: 8, false: 16}[strings.Contains(word, "reference")]; n != want {
			t.Errorf("%s in %d processes, want %d", word, n, want)
		}
	}
}

func TestCallsOf(t *testing.T) {
	for _, c := range []struct {
		calls int
		batch float64 // ns a call
		want  int
	}{{36, 6000, 36}, {16, 10000, 23}, {1, 250000, 1}, {4096, 40, mostCalls}} {
		got := callsOf([]evidence.Sample{{CacheState: evidence.Warm, Calls: c.calls, BatchesNS: []float64{c.batch, c.batch, c.batch * 9}}})
		if got[evidence.Warm] != c.want || len(got) != 1 {
			t.Errorf("%d calls of %g ns: %v, want %d", c.calls, c.batch, got, c.want)
		}
	}
}

// A harness that takes another number of calls in one arm is not compared.
func TestUnevenCallsAreRefused(t *testing.T) {
	records, _, c, err := ask(t, `[ $n = 4 ] && more='s|"calls":[0-9]*,"kernel_nodes":[0-9]*|"calls":6,"kernel_nodes":6|'`, nil, twoPairs()[:1], question(0))
	if err != nil {
		t.Fatal(err)
	}
	if f := records[0].Failure; f == nil || f.Kind != evidence.Tool || !strings.Contains(f.Message, "calls in one process and") {
		t.Errorf("%+v", f)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "steps of the timer, and 400 are needed") {
		t.Errorf("noted %q", notes)
	}
}
