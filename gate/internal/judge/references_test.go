package judge

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestTheFastestReferenceCounts: the head takes 100 µs, and may take as long as
// the fastest of two references.
func TestTheFastestReferenceCounts(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	takes := func(ns float64) fact {
		return just(experimentFrom(3, func() []evidence.Sample { return samples(r, 4, ns) }, func() []evidence.Sample { return samples(r, 4, 100_000) }))
	}
	good, wrong := just(correctRecord()), just(broke(evidence.Wrong))
	for _, c := range []struct {
		name string
		a, b reference
		want verdict.Status // of the whole
		of   string         // the reference of the finding that decides
		says string
	}{
		{"faster than both", reference{"op/a", good, takes(200_000)}, reference{"op/b", good, takes(300_000)}, verdict.Pass, "op/a", "; the fastest of 2 references"},
		{"slower than the fastest", reference{"op/a", good, takes(300_000)}, reference{"op/b", good, takes(50_000)}, verdict.Fail, "op/b", "; the fastest of 2 references"},
		{"slower than both", reference{"op/a", good, takes(50_000)}, reference{"op/b", good, takes(70_000)}, verdict.Fail, "op/a", "; the fastest of 2 references"},
		{"one was never timed", reference{"op/a", good, takes(200_000)}, reference{"op/b", good, fact{}}, verdict.Inconclusive, "op/b", "it was never timed beside op/b"},
		{"one was never timed, and the other is faster than the head", reference{"op/a", good, takes(50_000)}, reference{"op/b", good, fact{}}, verdict.Fail, "op/a", "; the fastest of 2 references"},
		{"one is wrong", reference{"op/a", good, takes(200_000)}, reference{"op/b", wrong, takes(300_000)}, verdict.Inconclusive, "op/b", "the reference op/b is not a measure"},
		{"one that is wrong is faster than the head", reference{"op/a", good, takes(200_000)}, reference{"op/b", wrong, takes(50_000)}, verdict.Inconclusive, "op/b", "the reference op/b is not a measure"},
		{"one was never checked", reference{"op/a", good, takes(200_000)}, reference{"op/b", fact{}, takes(300_000)}, verdict.Inconclusive, "op/b", "the reference op/b is not a measure"},
		{"none is there", reference{"op/a", fact{}, fact{}}, reference{"op/b", fact{}, fact{}}, verdict.Inconclusive, "op/a", "it was never timed beside op/a"},
	} {
		for _, cache := range []string{"latency.typical", "latency.cold_mean"} {
			p := languageOf(t, "{id: a, metric: "+cache+", relative_to: [a, b], limit: 1}", "")
			v := judged(t, p, change(func(_ *kernel, k *kase) { k.references = []reference{c.a, c.b} }))
			found := slices.ContainsFunc(v.Kernels[0].Findings, func(f verdict.Finding) bool {
				return f.Rule == "a" && f.Status == c.want && f.RelativeTo == c.of && strings.Contains(f.Reason, c.says)
			})
			if v.Status != c.want || !found {
				t.Errorf("%s, %s: %s\n%s", c.name, cache, v.Status, summaryOf(v))
			}
		}
	}
}

// TestReferencesShareTheErrorRate: every reference of a list is a test of the
// family, and a question of its own.
func TestReferencesShareTheErrorRate(t *testing.T) {
	p := languageOf(t, "{id: a, metric: latency.typical, relative_to: [a, b, op/c], limit: 1};{id: b, metric: latency.typical, max_regression: 2%}", "")
	asked, l := change(func(_ *kernel, k *kase) {
		k.references = []reference{{name: "op/a"}, {name: "op/b"}, {name: "op/c"}}
	}).known(t, p)
	if n := asked.Family(); n != 4 {
		t.Errorf("a family of %d tests, want 4", n)
	}
	seen := map[plan.ID]bool{}
	for _, q := range asked.Questions {
		if seen[q.ID()] {
			t.Errorf("%s is asked twice", q.ID())
		}
		seen[q.ID()] = true
	}
	var first []string
	for _, task := range asked.Next(l).Tasks {
		first = append(first, task.Reference)
	}
	if got := strings.Join(first, " "); got != "op/a op/b op/c" {
		t.Errorf("checked first are %q, want the three references", got)
	}
}
