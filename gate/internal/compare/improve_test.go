package compare

import (
	"math/rand/v2"
	"testing"
)

// One kernel among 20 that became faster is shown, when it leaves after the
// fewest pairs that clear an unchanged one, at every profile.
func TestImprovementAmongTwentyKernels(t *testing.T) {
	for profile, sigma := range map[string]float64{"loose": 0.003, "standard": 0.003, "strict": 0.002} {
		limits, err := Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		shown, wrong := 0, 0
		const runs = 20
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 97))
			asked, effects := make([]Series, 40), make([]float64, 40)
			for i := range asked { // two questions a kernel
				asked[i] = Series{Limits: limits, Summaries: []Summary{Typical}}
			}
			effects[0] = -0.05
			d, err := NewDriver(SequentialPlan(), Budget{}, asked)
			if err != nil {
				t.Fatal(err)
			}
			drive(t, d, rng, sigma, effects, Cost{})
			outcomes, err := Decide(d.experiments(), d.plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range outcomes {
				switch {
				case i == 0 && o.Decision == Improved:
					shown++
				case i > 0 && o.Decision == Improved:
					wrong++
				}
			}
		}
		if shown < runs*9/10 || wrong > runs/10 {
			t.Errorf("%s: shown in %d of %d changes, and %d others", profile, shown, runs, wrong)
		}
	}
}
