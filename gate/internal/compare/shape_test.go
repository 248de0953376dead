package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestPlanAtItsBounds: each bound of a plan from both sides.
func TestPlanAtItsBounds(t *testing.T) {
	plan := func(change func(*Plan)) Plan { p := SequentialPlan(); change(&p); return p }
	rounds := func(size, n int) []int {
		var looks []int
		for i := range n {
			looks = append(looks, size*(i+1))
		}
		return looks
	}
	for _, c := range []struct {
		plan Plan
		want string // of the error; "" is none
	}{
		{SequentialPlan(), ""},
		{roundsOf(2), ""},
		{roundsOf(8), ""},
		{roundsOf(9), "a round needs 2 to 8 processes of an arm, got 9"},
		{roundsOf(1), "a round needs 2 to 8 processes of an arm, got 1"},
		{plan(func(p *Plan) { p.Looks = rounds(4, 256) }), ""},
		{plan(func(p *Plan) { p.Looks = rounds(4, 257) }), "a plan needs 1 to 256 looks, got 257"},
		{plan(func(p *Plan) { p.Looks = []int{1024} }), ""},
		{plan(func(p *Plan) { p.Looks = []int{8, 1028} }), "looks must grow in steps of 4 pairs up to 1024, got 1028 after 8"},
		{plan(func(p *Plan) { p.Looks = []int{8, 8} }), "looks must grow in steps of 4 pairs up to 1024, got 8 after 8"},
		{plan(func(p *Plan) { p.Looks = []int{0, 8} }), "looks must grow in steps of 4 pairs up to 1024, got 0 after 0"},
		{plan(func(p *Plan) { p.Elsewhere = maxExperiments }), ""},
		{plan(func(p *Plan) { p.Elsewhere = maxExperiments + 1 }), "the number of tests elsewhere"},
		{plan(func(p *Plan) { p.Alpha = 0 }), "error probabilities must be in (0, 0.5), got alpha 0, beta 0.01, fdr 0.05"},
		{plan(func(p *Plan) { p.Beta = 0.5 }), "error probabilities"},
		{plan(func(p *Plan) { p.Beta = 0.499 }), ""},
		{plan(func(p *Plan) { p.FDR = 0.5 }), "error probabilities"},
	} {
		err := c.plan.valid()
		if (c.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.plan, err, c.want)
		}
	}
}

// TestLooksAround: a look is reached with its own number of pairs.
func TestLooksAround(t *testing.T) {
	p := Plan{PerArm: 4, Looks: []int{4, 12}}
	for pairs, c := range map[int]struct {
		next    int
		more    bool
		reached int
	}{0: {4, true, 0}, 3: {4, true, 0}, 4: {12, true, 1}, 11: {12, true, 1}, 12: {0, false, 2}, 99: {0, false, 2}} {
		if next, more := p.nextLook(pairs); next != c.next || more != c.more || p.reached(pairs) != c.reached {
			t.Errorf("%d pairs: %d looks reached, then %d, %v, want %+v", pairs, p.reached(pairs), next, more, c)
		}
	}
	if got := p.rounds(); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("looks at 4 and 12 pairs come after %v rounds", got)
	}
}

// TestShapes: a look spends one over the root of its place from the first that
// may decide. An improvement spends most at the first look that can pass: one
// round has a smallest p value of 1/70, which is more than 1 %, two have 1/4900.
func TestShapes(t *testing.T) {
	near := func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-15 })
	}
	plan := SequentialPlan()
	plan.Looks = plan.Looks[:6]
	root := func(n int) float64 { return 1 / math.Sqrt(float64(n)) }
	none, eight, strict := Limits{Tolerance: 0.01, Detect: 0.03}, standard(t), Limits{Tolerance: 0.0025, Detect: 0.01, Tail: 0.2}
	for name, c := range map[string]struct{ got, want []float64 }{
		"red":                              {plan.red().shape, []float64{1, root(2), root(3), root(4), root(5), root(6)}},
		"pass":                             {plan.pass(none).shape, []float64{1, root(2), root(3), root(4), root(5), root(6)}},
		"pass from 8 pairs":                {plan.pass(eight).shape, []float64{0, 1, root(2), root(3), root(4), root(5)}},
		"pass from 18 pairs":               {plan.pass(strict).shape, []float64{0, 0, 0, 0, 1, root(2)}},
		"faster":                           {plan.faster(none).shape, []float64{0, 1, 0.1, 0.1, 0.1, 0.1}},
		"faster from 8 pairs":              {plan.faster(eight).shape, []float64{0, 1, 0.1, 0.1, 0.1, 0.1}},
		"faster from 18 pairs":             {plan.faster(strict).shape, []float64{0, 0, 0, 0, 1, 0.1}},
		"faster, which no look can reach":  {fixed(t, 1).faster(none).shape, []float64{0}},
		"faster, with few pairs of a tail": {fixed(t, 4).faster(strict).shape, []float64{0}},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	one := fixed(t, 1)
	one.Beta = one.pass(none).exact(1 / float64(ordersOf(perArm)))
	if got := one.faster(none).shape; !near(got, []float64{1}) {
		t.Errorf("a look whose smallest p value is beta itself can pass: %v", got)
	}
}

// TestThresholdsAreReached: a p value that is exactly at its step is rejected, and
// tests elsewhere make the steps smaller.
func TestThresholdsAreReached(t *testing.T) {
	for _, c := range []struct {
		ps        []float64
		elsewhere int
		holm, bh  float64
	}{
		{nil, 0, 0.5, 0},
		{nil, 4, 0.125, 0},
		{[]float64{0.6}, 0, 0.5, 0},
		{[]float64{0.5}, 0, 0.5, 0.5},
		{[]float64{0.25, 0.75}, 0, 0.25, 0.25},
		{[]float64{0.5, 0.25}, 0, 0.5, 0.5},
		{[]float64{0.26, 0.1}, 0, 0.5, 0.26},
		{[]float64{0.26, 0.5}, 0, 0.25, 0.5},
		{[]float64{0.125, 0.2, 0.3}, 1, 0.125, 0.3},
		{[]float64{0.125, 0.1, 0.3}, 1, 0.5 / 3, 0.3},
		{[]float64{0.6, 0.6, 0.6, 0.5}, 0, 0.125, 0},
	} {
		if got := holmThreshold(c.ps, c.elsewhere, 0.5); got != c.holm {
			t.Errorf("%v and %d elsewhere: Holm's threshold is %v, want %v", c.ps, c.elsewhere, got, c.holm)
		}
		if got := benjaminiHochbergThreshold(c.ps, 0.5); got != c.bh {
			t.Errorf("%v: that of Benjamini and Hochberg is %v, want %v", c.ps, got, c.bh)
		}
	}
}

// TestNullOfOne: the counts of two processes of an arm are 0 to 4 in 1, 1, 2, 1
// and 1 of six orders.
func TestNullOfOne(t *testing.T) {
	n := nullOf(2, 1)
	if got := fmt.Sprint(mannWhitneyCounts(2, 2)); got != "[1 1 2 1 1]" {
		t.Errorf("counts %s", got)
	}
	if got := fmt.Sprint(mannWhitneyCounts(1, 2), mannWhitneyCounts(2, 0), mannWhitneyCounts(0, 1)); got != "[1 1 1] [1] [1]" {
		t.Errorf("counts %s", got)
	}
	for u, want := range map[int]float64{-1: 1, 0: 1, 1: 5.0 / 6, 2: 4.0 / 6, 3: 2.0 / 6, 4: 1.0 / 6, 5: 0, 6: 0, 70: 0} {
		if got := n.atLeast(u); math.Abs(got-want) > 1e-15 {
			t.Errorf("P(U >= %d) is %v, want %v", u, got, want)
		}
		if got := n.atMost(4 - u); math.Abs(got-want) > 1e-15 {
			t.Errorf("P(U <= %d) is %v, want %v", 4-u, got, want)
		}
	}
	for u := range 5 {
		if got, ok := n.critical(n.upper[u]); got != u || !ok {
			t.Errorf("P(U >= %d) itself has the critical value %d, %v", u, got, ok)
		}
	}
	if got, ok := n.critical(n.least() / 2); ok {
		t.Errorf("below the smallest p value %d is critical", got)
	}
	for perArm, orders := range map[int]float64{2: 6, maxPerArm: 12870} {
		if got := nullOf(perArm, 1).least(); math.Abs(got*orders-1) > 1e-12 {
			t.Errorf("%d of each arm: the smallest p value is %v, want 1/%v", perArm, got, orders)
		}
	}
}
