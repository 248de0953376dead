package compare

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// repetitions are those of a simulation: few in every run of the tests, and as
// many as GATE_LEVEL_FULL says for the figures of gate/docs/statistics.md.
func repetitions(t *testing.T, few int) int {
	t.Helper()
	simulates(t)
	text := os.Getenv("GATE_LEVEL_FULL")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("GATE_LEVEL_FULL=%s is not a number", text)
	}
	return n
}

// simulates leaves out of make race what computes for long in one goroutine.
func simulates(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("computes for long in one goroutine")
	}
}

// A noise is a synthetic machine: what moves the processes of an unchanged
// kernel. The standard deviations are of logarithms.
type noise struct {
	name     string
	process  float64 // bias of a process
	batch    float64 // white, inside a process
	drift    float64 // amplitude of a sinusoid over 100 processes, all kernels together
	warm     float64 // start-up excess that decays over 20 processes
	auto     float64 // AR(1) between processes with coefficient 0.9
	bursts   float64 // share of processes disturbed by up to 10 %
	slowMode float64 // share of processes that are 3 % slower
	tails    float64 // share of batches that are 8 % slower
}

var noises = []noise{
	{name: "quiet", process: .003, batch: .002},
	{name: "drift", process: .003, batch: .002, drift: .03, warm: .05},
	{name: "bimodal", process: .003, batch: .002, slowMode: .3},
	{name: "autocorrelated", process: .002, batch: .004, auto: .01},
	{name: "bursts", process: .003, batch: .004, bursts: .1, tails: .02},
	{name: "mix", process: .006, batch: .004, drift: .02, warm: .02, auto: .004, bursts: .05, slowMode: .1, tails: .01},
}

// A machine is a noise in time.
type machine struct {
	noise
	rng   *rand.Rand
	phase float64
	slot  int
	state float64
}

func newMachine(n noise, rng *rand.Rand) *machine {
	return &machine{noise: n, rng: rng, phase: 2 * math.Pi * rng.Float64(), state: n.auto * rng.NormFloat64()}
}

// tick moves to the next process and returns what it does to all kernels.
func (m *machine) tick() float64 {
	const rho = 0.9
	m.state = rho*m.state + math.Sqrt(1-rho*rho)*m.auto*m.rng.NormFloat64()
	shared := m.state + m.drift*math.Sin(m.phase+2*math.Pi*float64(m.slot)/100) - m.warm*math.Exp(-float64(m.slot)/20)
	if m.rng.Float64() < m.bursts {
		shared += 0.01 + 0.09*m.rng.Float64()
	}
	m.slot++
	return shared
}

// process times eight batches of one kernel.
func (m *machine) process(shared, effect float64, to []float64) {
	level := shared + m.noise.process*m.rng.NormFloat64() + effect
	if m.rng.Float64() < m.slowMode {
		level += 0.03
	}
	for i := range to {
		y := level + m.batch*m.rng.NormFloat64()
		if m.rng.Float64() < m.tails {
			y += 0.08
		}
		to[i] = 1e5 * math.Exp(y)
	}
}

// reader feeds the driver's draws from a seeded generator.
type reader struct{ *rand.Rand }

func (r reader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = reader{}

// A tally counts the decisions about kernels, and the pull requests with a red one.
type tally struct {
	decisions [4]int
	red       int
	pairs     int
}

// pullRequest drives one pull request to its end on a machine, all kernels
// with the given effect.
func pullRequest(t testing.TB, m *machine, plan Plan, limits Limits, kernels int, effect float64, sum *tally) {
	t.Helper()
	asked := make([]Series, kernels)
	for i := range asked {
		asked[i].Limits = limits
	}
	d := newDriver(plan, Budget{}, asked) // NewDriver refuses the tolerance of 0 that shows the level
	driveMachine(t, d, m, effect)
	sum.add(d)
}

// driveMachine runs a driver to its end on a machine.
func driveMachine(t testing.TB, d *Driver, m *machine, effect float64) {
	t.Helper()
	times := make([]float64, 8)
	for {
		step, more, err := d.NextRound(reader{m.rng})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		processes := make(map[int][]Process, len(step.Experiments))
		for slot, arm := range step.Order {
			shared := m.tick()
			for _, name := range step.Experiments {
				if processes[name] == nil {
					processes[name] = make([]Process, len(step.Order))
				}
				on := 0.0
				if arm == Head {
					on = math.Log1p(effect)
				}
				m.process(shared, on, times)
				processes[name][slot] = summarized(t, times)
			}
		}
		rounds := make(map[int]Round, len(processes))
		for name, l := range processes {
			rounds[name] = dealt(step.Order, l)
		}
		if err := d.Add(step, rounds, Cost{}); err != nil {
			t.Fatal(err)
		}
	}
}

// add judges a driver's evidence without the figures of an Outcome.
func (s *tally) add(d *Driver) {
	red, faster, _ := thresholds(d.trials, d.plan)
	reds := 0
	for _, t := range d.trials {
		v, _ := t.decision(red, faster, d.plan)
		s.decisions[v]++
		s.pairs += t.experiment.pairs()
		if v == Regressed {
			reds++
		}
	}
	if reds > 0 {
		s.red++
	}
}

// atMost is the count that a share of at most p exceeds in n trials with a
// probability below 0.1 %.
func atMost(p float64, n int) int {
	return int(math.Ceil(p*float64(n) + 3.1*math.Sqrt(p*(1-p)*float64(n))))
}

// TestLevel runs unchanged pull requests of 30 kernels through the driver on
// hostile machines: at most 1 % may be red. The bound is sharp only where the
// tolerance is 0 and no kernel leaves early because it passed, so that is run
// too, beside what a policy can ask for.
func TestLevel(t *testing.T) {
	requests := repetitions(t, 20)
	for _, limits := range []Limits{{Tolerance: 0, Detect: 1e-6}, {Tolerance: 0, Detect: 0.02}, standard(t)} {
		for i, n := range noises {
			const seed = 20
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			var sum tally
			for range requests {
				pullRequest(t, newMachine(n, rng), SequentialPlan(), limits, 30, 0, &sum)
			}
			t.Logf("%-14s tolerance %.1f %%, detect %.1f %%: %d of %d pull requests red; kernels: %d regressed, %d pass, %d improved, %d inconclusive; %.1f pairs a kernel",
				n.name, 100*limits.Tolerance, 100*limits.Detect, sum.red, requests, sum.decisions[Regressed], sum.decisions[Pass],
				sum.decisions[Improved], sum.decisions[Inconclusive], float64(sum.pairs)/float64(30*requests))
			if sum.red > atMost(0.01, requests) {
				t.Errorf("%s (seed %d): %d of %d unchanged pull requests are red, more than 1 %%", n.name, seed, sum.red, requests)
			}
		}
	}
}

// TestLevelExact lists all orders of two rounds over fixed slots with a drift,
// two modes and many ties: the share of orders with a p value of at most x is
// at most x, for every x there is. Half ties would break this.
func TestLevelExact(t *testing.T) {
	for name, slots := range map[string][2][roundSize]float64{
		"distinct": {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13, 14, 15, 16}},
		"ties":     {{1, 1, 1, 2, 2, 2, 2, 2}, {3, 3, 3, 3, 3, 3, 3, 4}},
		"modes":    {{1, 9, 1, 9, 2, 9, 1, 9}, {2, 2, 2, 2, 8, 8, 8, 8}},
		"drift":    {{1, 2, 3, 5, 8, 13, 21, 34}, {34, 21, 13, 8, 5, 3, 2, 1}},
		"constant": {{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		var above, below []float64
		for i := range orders {
			for j := range orders {
				var d []stratum
				for b, o := range []Order{orderAt(i, perArm), orderAt(j, perArm)} {
					var base, head []float64
					for slot, a := range o {
						if a == Base {
							base = append(base, slots[b][slot])
						} else {
							head = append(head, slots[b][slot])
						}
					}
					d = append(d, stratum{base, head})
				}
				above, below = append(above, pAboveAll(d, 0)), append(below, pBelowAll(d, 0))
			}
		}
		for _, ps := range [][]float64{above, below} {
			slices.Sort(ps)
			for i, p := range ps {
				if i+1 < len(ps) && ps[i+1] == p {
					continue
				}
				if share := float64(i+1) / float64(len(ps)); share > p+1e-12 {
					t.Errorf("%s: %.5f of the orders have a p value of at most %.5f", name, share, p)
				}
			}
		}
	}
}

// TestLevelNeedsRandomOrder shows that the machines are hostile enough to tell:
// the same test on rounds that always run the base first calls equal arms
// different.
func TestLevelNeedsRandomOrder(t *testing.T) {
	const seed, requests = 24, 100
	rng := rand.New(rand.NewPCG(seed, 0))
	red := 0
	for range requests {
		m := newMachine(noises[1], rng)
		rounds := make([]Round, 3)
		for i := range rounds {
			for _, side := range []*[]Process{&rounds[i].Base, &rounds[i].Head} {
				for range perArm {
					times := make([]float64, 8)
					m.process(m.tick(), 0, times)
					*side = append(*side, summarized(t, times))
				}
			}
		}
		if decideOne(t, Series{Limits: standard(t), Rounds: rounds}, fixed(t, 3)).Decision == Regressed {
			red++
		}
	}
	if red < requests/10 {
		t.Errorf("seed %d: %d of %d equal arms in a fixed order are red; the drift is too weak to test anything", seed, red, requests)
	}
}

// TestPower plants an effect of at least detect in one kernel, on a machine as
// quiet as the H200 of the samples and on a bad one. It is found, and at most
// 1 % of the kernels pass. A thirtieth of alpha makes the bar what it is for one
// slow kernel among 30: Holm's first step over 60 tests.
func TestPower(t *testing.T) {
	strict, err := Profile("strict")
	if err != nil {
		t.Fatal(err)
	}
	quiet, mix := noises[0], noises[5]
	kernels := repetitions(t, 300)
	plan := SequentialPlan()
	plan.Alpha /= 30
	for i, c := range []struct {
		noise         noise
		limits        Limits
		effect, share float64
	}{
		{quiet, standard(t), 0.02, 0.99}, {quiet, standard(t), 0.03, 0.99}, {quiet, standard(t), 0.05, 0.99},
		{quiet, strict, 0.01, 0.90}, {quiet, strict, 0.02, 0.99},
		{mix, standard(t), 0.02, 0.85}, {mix, standard(t), 0.03, 0.97}, {mix, standard(t), 0.05, 0.99},
		{mix, strict, 0.01, 0.50}, {mix, strict, 0.02, 0.90},
	} {
		const seed = 21
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var sum tally
		for range kernels {
			pullRequest(t, newMachine(c.noise, rng), plan, c.limits, 1, c.effect, &sum)
		}
		found, passed := float64(sum.decisions[Regressed])/float64(kernels), sum.decisions[Pass]+sum.decisions[Improved]
		t.Logf("%-5s %+.0f %% at tolerance %.2f %%, detect %.0f %%: %.2f %% of %d kernels found, %.2f %% passed, %.1f pairs a kernel",
			c.noise.name, 100*c.effect, 100*c.limits.Tolerance, 100*c.limits.Detect, 100*found, kernels,
			100*float64(passed)/float64(kernels), float64(sum.pairs)/float64(kernels))
		if found < c.share {
			t.Errorf("%s, %+.0f %% (seed %d): found in %.3f of the kernels, want at least %.2f", c.noise.name, 100*c.effect, seed, found, c.share)
		}
		if passed > atMost(0.01, kernels) {
			t.Errorf("%s, %+.0f %% (seed %d): %d of %d kernels passed, more than 1 %%", c.noise.name, 100*c.effect, seed, passed, kernels)
		}
	}
}

// TestRoundSizes holds rounds of four against rounds of five: the pairs that
// clear an unchanged kernel and find one that is slower by detect, among the four
// tests of one kernel.
func TestRoundSizes(t *testing.T) {
	kernels := repetitions(t, 100)
	for _, profile := range []string{"loose", "standard", "strict"} {
		limits, err := Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{4, 5} {
			plan := roundsOf(size)
			plan.Elsewhere = 2
			line := ""
			for i, effect := range []float64{0, limits.Detect} {
				const seed = 26
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				var sum tally
				for range kernels {
					pullRequest(t, newMachine(noises[0], rng), plan, limits, 1, effect, &sum)
				}
				if wrong := sum.decisions[[]Decision{Regressed, Pass}[i]]; wrong > atMost(0.01, kernels) {
					t.Errorf("%s, rounds of %d, %+.1f %%: %d of %d are wrong", profile, size, 100*effect, wrong, kernels)
				}
				line += fmt.Sprintf("; %+.0f %%: %.1f pairs, %d of %d red", 100*effect, float64(sum.pairs)/float64(kernels), sum.decisions[Regressed], kernels)
			}
			t.Logf("%s, rounds of %d%s", profile, size, line)
		}
	}
}

// TestCoverage shifts one arm on a drifting, bimodal machine: the 95 % interval
// holds the shift in at least 95 % of the experiments.
func TestCoverage(t *testing.T) {
	experiments := repetitions(t, 600)
	for i, n := range noises {
		for _, rounds := range []int{2, 3, 8} {
			const seed, effect = 22, 0.013
			rng := rand.New(rand.NewPCG(seed, uint64(i*100+rounds)))
			held := 0
			for range experiments {
				_, low, high := hodgesLehmann(strataOf(machineRounds(t, newMachine(n, rng), rounds, effect), Typical), intervalConfidence)
				if low <= math.Log1p(effect) && math.Log1p(effect) <= high {
					held++
				}
			}
			t.Logf("%-14s %2d pairs: %.2f %% of %d intervals hold the effect", n.name, perArm*rounds, 100*float64(held)/float64(experiments), experiments)
			if missed := experiments - held; missed > atMost(1-intervalConfidence, experiments) {
				t.Errorf("%s, %d rounds (seed %d): %d of %d intervals miss the effect", n.name, rounds, seed, missed, experiments)
			}
		}
	}
}

// machineRounds times rounds of one kernel.
func machineRounds(t testing.TB, m *machine, rounds int, effect float64) []Round {
	t.Helper()
	list := make([]Round, rounds)
	times := make([]float64, 8)
	for i := range list {
		order := orderAt(m.rng.IntN(orders), perArm)
		processes := make([]Process, roundSize)
		for slot, arm := range order {
			on := 0.0
			if arm == Head {
				on = math.Log1p(effect)
			}
			m.process(m.tick(), on, times)
			processes[slot] = summarized(t, times)
		}
		list[i] = dealt(order, processes)
	}
	return list
}

// TestDetectableIsFound plants the effect that MDE90 names, learned from an
// A/A run on the same machine, and runs the whole procedure on it, passes
// included: it is red nine times of ten.
func TestDetectableIsFound(t *testing.T) {
	simulates(t)
	const seed, tests, machines = 23, 4, 20
	for i, n := range []noise{noises[0], noises[5]} {
		for _, profile := range []string{"standard", "strict"} {
			limits, err := Profile(profile)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			plan := SequentialPlan()
			plan.Elsewhere = tests - 1
			var sum tally
			for range machines {
				pool := residuals(machineRounds(t, newMachine(n, rng), 25, 0), Typical)
				effect, ok := replay{pool: pool, limits: limits, plan: plan, pairs: 120}.detectable(tests)
				if !ok {
					t.Fatalf("nothing is found among %d tests", tests)
				}
				for range 10 {
					d := newDriver(plan, Budget{}, []Series{{Limits: limits, Summaries: []Summary{Typical}}})
					driveMachine(t, d, newMachine(n, rng), effect)
					sum.add(d)
				}
			}
			share := float64(sum.decisions[Regressed]) / (10 * machines)
			t.Logf("%s, %s: MDE90 is found with probability %.2f, %d pass", n.name, profile, share, sum.decisions[Pass])
			if share < 0.80 || share > 0.99 {
				t.Errorf("%s, %s (seed %d): the effect promised with 90 %% is found with %.2f", n.name, profile, seed, share)
			}
		}
	}
}

// A tail is a way in which a head is slower that no shift describes.
type tail struct {
	name                 string
	base, head           float64 // share of slow processes
	slow                 float64 // by how much
	batches, slowBatches float64 // share of slow batches in every process of the head, and by how much
	spread               float64 // further standard deviation of the head's processes
}

// mean is the true effect on the mean over processes.
func (l tail) mean() float64 {
	return ((1+l.head*l.slow)*(1+l.batches*l.slowBatches)*math.Exp(l.spread*l.spread/2))/(1+l.base*l.slow) - 1
}

var tails = []tail{
	{name: "10 % of the processes +20 %", head: .1, slow: .2},
	{name: "20 % of the processes +25 %", head: .2, slow: .25},
	{name: "30 % of the processes +30 %", head: .3, slow: .3},
	{name: "25 % of the processes +80 %", head: .25, slow: .8},
	{name: "2 % of the batches +100 %", batches: .02, slowBatches: 1},
	{name: "10 % of the batches +20 %", batches: .1, slowBatches: .2},
	{name: "slow mode +5 %, 0 to 20 %", head: .2, slow: .05},
	{name: "slow mode +25 %, 20 to 40 %", base: .2, head: .4, slow: .25},
	{name: "noisier by 3 %, equal median", spread: .03},
}

// tailRound times one round on a quiet machine; slow counts the head's slow processes.
func (l tail) round(rng *rand.Rand, size int) (b Round, slow int) {
	for arm := range 2 {
		for range size {
			level, times := 0.003*rng.NormFloat64(), make([]float64, 8)
			share := [2]float64{l.base, l.head}[arm]
			if rng.Float64() < share {
				level += math.Log1p(l.slow)
				slow += arm
			}
			level += float64(arm) * l.spread * rng.NormFloat64()
			for i := range times {
				times[i] = level + 0.002*rng.NormFloat64()
				if arm == 1 && rng.Float64() < l.batches {
					times[i] += math.Log1p(l.slowBatches)
				}
				times[i] = 1e5 * math.Exp(times[i])
			}
			p, _ := Summarize(times)
			if arm == 0 {
				b.Base = append(b.Base, p)
			} else {
				b.Head = append(b.Head, p)
			}
		}
	}
	return b, slow
}

// TestTails runs heads with a tail through the driver, both metrics gated. A
// head whose tail was not drawn passes, and no other whose true mean is above detect.
func TestTails(t *testing.T) {
	kernels := repetitions(t, 100)
	for _, profile := range []string{"standard", "strict"} {
		limits, err := Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		plan := SequentialPlan()
		plan.Elsewhere = 2
		for i, l := range tails {
			const seed = 25
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			var sum tally
			unseen, wrong := 0, 0
			for range kernels {
				d := newDriver(plan, Budget{}, []Series{{Limits: limits, Summaries: []Summary{Typical}}, {Limits: limits, Summaries: []Summary{Mean}}})
				drawn := l.drive(t, d, rng)
				red, _, _ := thresholds(d.trials, plan)
				typical := decided(d.trials[0].tests, red, plan)
				mean := decided(d.trials[1].tests, red, plan)
				switch {
				case typical == Regressed || mean == Regressed:
					sum.decisions[Regressed]++
				case typical == Pass && mean == Pass && drawn == 0:
					sum.decisions[Pass]++
					unseen++
				case typical == Pass && mean == Pass:
					sum.decisions[Pass]++
					wrong++
				}
				sum.pairs += d.trials[1].experiment.pairs()
			}
			t.Logf("%-8s %-28s true mean %+5.1f %%: %5.1f %% red, %5.1f %% pass (%5.1f %% with no slow process drawn), %.1f pairs", profile, l.name, 100*l.mean(),
				100*float64(sum.decisions[Regressed])/float64(kernels), 100*float64(sum.decisions[Pass])/float64(kernels), 100*float64(unseen)/float64(kernels), float64(sum.pairs)/float64(kernels))
			if l.head > 0 && l.mean() >= limits.Detect && wrong > atMost(0.02, kernels) {
				t.Errorf("%s, %s (seed %d): %d of %d pass although a slow process was drawn", profile, l.name, seed, wrong, kernels)
			}
		}
	}
}

// drive runs one kernel to its end and counts the slow processes of the head.
func (l tail) drive(t *testing.T, d *Driver, rng *rand.Rand) (drawn int) {
	t.Helper()
	for {
		step, more, err := d.NextRound(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return drawn
		}
		b, slow := l.round(rng, perArm)
		drawn += slow
		rounds := map[int]Round{}
		for _, i := range step.Experiments {
			rounds[i] = b
		}
		if err := d.Add(step, rounds, Cost{}); err != nil {
			t.Fatal(err)
		}
	}
}
