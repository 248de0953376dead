package compare

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// Contenders of one round of the samples: the base, the same binary again, and
// four with planted extra work.
const (
	roundBase = iota
	roundAgain
	roundPlus1
	roundPlus2
	roundPlus3
	roundPlus5
	samplesInRound
)

const sampleRounds = 20

// samples holds the batch times in nanoseconds by kind, round and contender.
type samples map[string]*[sampleRounds][samplesInRound][]float64

// readSamples reads the recorded processes of the H200.
func readSamples(t testing.TB) samples {
	t.Helper()
	f, err := os.Open("testdata/h200-aa.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s, processes := samples{}, 0
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			Kind         string
			Microseconds []float64 `json:"us"`
			Round, Order int
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if s[row.Kind] == nil {
			s[row.Kind] = &[sampleRounds][samplesInRound][]float64{}
		}
		for _, us := range row.Microseconds {
			to := &s[row.Kind][row.Round][row.Order%samplesInRound]
			*to = append(*to, 1000*us)
		}
		processes++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if processes != 480 || len(s) != 4 {
		t.Fatalf("read %d processes of %d kinds, want 480 of 4", processes, len(s))
	}
	return s
}

// rounds makes a round of every four recorded ones, base against one contender.
func (s samples) rounds(t testing.TB, kind string, contender int) []Round {
	t.Helper()
	list := make([]Round, sampleRounds/perArm)
	for i := range list {
		for j := range perArm {
			list[i].Base = append(list[i].Base, summarized(t, s[kind][perArm*i+j][roundBase]))
			list[i].Head = append(list[i].Head, summarized(t, s[kind][perArm*i+j][contender]))
		}
	}
	return list
}

func summarized(t testing.TB, batches []float64) Process {
	t.Helper()
	l, err := Summarize(batches)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// judged is a pull request of the four kinds against one contender.
func (s samples) judged(t testing.TB, contender int, profile string, plan Plan) map[string]Outcome {
	t.Helper()
	limits, err := Profile(profile)
	if err != nil {
		t.Fatal(err)
	}
	var experiments []Series
	var kinds []string
	for kind := range s {
		kinds = append(kinds, kind)
		rounds := s.rounds(t, kind, contender)
		rounds = rounds[:min(len(rounds), plan.LastPairs()/perArm)]
		experiments = append(experiments, Series{Limits: limits, Rounds: rounds})
	}
	outcomes, err := Decide(experiments, plan)
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string]Outcome{}
	for i, o := range outcomes {
		byKind[kinds[i]] = o
	}
	return byKind
}

func TestSamplesUnchanged(t *testing.T) {
	s := readSamples(t)
	for _, profile := range []string{"standard", "strict", "loose"} {
		for kind, o := range s.judged(t, roundAgain, profile, SequentialPlan()) {
			if o.Decision != Pass {
				t.Errorf("%s at %s: %s (%v), want pass", kind, profile, o.Decision, o.Reason)
			}
		}
	}
}

func TestSamplesSlower(t *testing.T) {
	s := readSamples(t)
	for _, c := range []struct {
		profile    string
		contenders []int
	}{
		{"standard", []int{roundPlus2, roundPlus3, roundPlus5}},
		{"strict", []int{roundPlus1, roundPlus2, roundPlus3, roundPlus5}},
	} {
		for _, contender := range c.contenders {
			outcomes := s.judged(t, contender, c.profile, SequentialPlan())
			for _, kind := range []string{"fma", "stream", "mma"} {
				if o := outcomes[kind]; o.Decision != Regressed {
					t.Errorf("%s, contender %d at %s: %s (%v), want regressed", kind, contender, c.profile, o.Decision, o.Reason)
				}
			}
		}
	}
}

// The label of tiny counts loop steps. Its time is quantised and mostly launch
// overhead: 1 % more steps is faster, 2 and 3 % are one and the same.
func TestSamplesTiny(t *testing.T) {
	s := readSamples(t)
	for contender, want := range map[int]struct {
		low, high float64
		verdict   Decision
	}{
		roundPlus1: {-0.008, -0.003, Pass},
		roundPlus2: {0.012, 0.016, Regressed},
		roundPlus3: {0.012, 0.016, Regressed},
		roundPlus5: {0.025, 0.029, Regressed},
	} {
		o := s.judged(t, contender, "standard", SequentialPlan())["tiny"]
		estimate := o.Summaries[0].Estimate
		if o.Decision != want.verdict || !(want.low < estimate && estimate < want.high) {
			t.Errorf("contender %d: %s with %v, want %s within %v and %v", contender, o.Decision, estimate, want.verdict, want.low, want.high)
		}
	}
}
