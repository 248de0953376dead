package plan

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

var (
	h200 = evidence.Machine{GPU: "NVIDIA H200", Driver: "580", CC: "9.0"}
	h100 = evidence.Machine{GPU: "NVIDIA H100", Driver: "580", CC: "9.0"}
	a100 = evidence.Machine{GPU: "NVIDIA A100", Driver: "580", CC: "8.0"}
	now  = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
)

// policyOf has these rules and machines; with stored the base is not run.
func policyOf(t testing.TB, stored bool, machines []string, rules ...string) *policy.Policy {
	t.Helper()
	text := "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\n"
	if stored {
		text += "latency: {base: stored}\n"
	}
	if len(machines) > 0 {
		text += "machines: [" + strings.Join(machines, ", ") + "]\n"
	}
	p, err := policy.Parse([]byte(text+"rules:\n  - "+strings.Join(rules, "\n  - ")+"\n"), "policies.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// rules are one of every kind.
var rules = []string{
	"{id: spills, metric: ptxas.spill_bytes, limit: 0}",
	"{id: registers, metric: ptxas.registers, max_regression: 8}",
	"{id: growth, metric: check.max_abs_error, max_regression: 10%}",
	"{id: occupancy, metric: ncu.achieved_occupancy, max_regression: 5pp}",
	"{id: waves, metric: ncu.waves, max_regression: 10%}",
	"{id: latency, metric: latency.typical, max_regression: 2%}",
	"{id: mean, metric: latency.mean, max_regression: 5%, severity: warn}",
	"{id: bound, metric: latency.typical, limit: 120us}",
	"{id: tail, metric: latency.p99, max_regression: 10%}",
	"{id: ratio, metric: latency.cold_mean, relative_to: ref, limit: 1.5}",
}

// withoutAdvice are the rules of a policy that does not run the base.
func withoutAdvice() []string {
	return slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return strings.Contains(r, "p99") })
}

func code(side, of string) evidence.Identity {
	return evidence.Identity{Code: side + " of " + of, Host: "h"}
}

// subject is a kernel of a state with cases.
func subject(name string, state verdict.State, cases ...string) *Subject {
	op, _, _ := strings.Cut(name, "/")
	s := &Subject{Name: name, Arch: "sm_90", Op: op, State: state, Head: Side{Identity: code("head", name)},
		References: map[string]Side{op + "/ref": {Identity: code("ref", name)}}}
	switch state {
	case verdict.Changed:
		s.Base = Side{Identity: code("base", name)}
	case verdict.Unchanged:
		s.Base = s.Head
	}
	for _, c := range cases {
		s.Cases = append(s.Cases, Case{Name: c, Harness: "harness of " + c})
	}
	return s
}

func nothing(*evidence.Need) bool { return false }

// bound is a plan on the machines that are known.
func bound(t testing.TB, p *policy.Policy, o Options, known []evidence.Machine, subjects ...*Subject) Plan {
	t.Helper()
	o.Now = now
	out, err := Bound(p, subjects, o, known, nothing)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// words names a question's needs: their use, tier and side.
func words(q *Question) string {
	uses := map[evidence.Use]string{evidence.First: "first", evidence.Answers: "answers", evidence.Instead: "instead", evidence.Shown: "shown"}
	side := func(a evidence.Address) string {
		if a.Identity == q.Subject.Head.Identity {
			return "head"
		}
		word, _, _ := strings.Cut(a.Code, " ")
		return word
	}
	var out []string
	for _, n := range q.Needs {
		text := fmt.Sprintf("%s %s %s", uses[n.Use], n.Tier, side(n.At))
		if n.Compares() {
			text += "+" + side(n.Base)
		}
		if n.Holds != "" {
			text += " " + n.Holds
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// of finds a rule's questions.
func of(p Plan, rule string) []*Question {
	var out []*Question
	for i := range p.Questions {
		if p.Questions[i].Name == rule {
			out = append(out, &p.Questions[i])
		}
	}
	return out
}

func TestWhatARuleAsks(t *testing.T) {
	const (
		static = "{id: a, metric: ptxas.registers, limit: 1}"
		spill  = "{id: a, metric: ptxas.registers, max_regression: 1}"
		errors = "{id: a, metric: check.relative_error, max_regression: 10%}"
		most   = "{id: a, metric: check.relative_error, limit: 1}"
		waves  = "{id: a, metric: ncu.waves, max_regression: 1}"
		least  = "{id: a, metric: ncu.achieved_occupancy, limit: 50%}"
		time   = "{id: a, metric: latency.typical, max_regression: 2%}"
		below  = "{id: a, metric: latency.typical, limit: 1us}"
		ratio  = "{id: a, metric: latency.typical, relative_to: ref, limit: 2}"
		tail   = "{id: a, metric: latency.p99, max_regression: 2%}"
		ceil   = "{id: a, metric: latency.p99, limit: 1us}"
		aaBoth = ", shown calibration head, shown calibration base"
	)
	for _, c := range []struct {
		name, rule    string
		state         verdict.State
		force, stored bool
		kind          Kind
		needs         string
	}{
		{"static limit", static, verdict.Changed, false, false, Limit, "answers static head"},
		{"static comparison", spill, verdict.Changed, false, false, Regression, "answers static head, answers static base"},
		{"static comparison of what is new", spill, verdict.New, false, false, Fresh, "answers static head"},
		{"limit of an error", most, verdict.Changed, false, false, Limit, "answers correctness head"},
		{"error of both", errors, verdict.Changed, false, false, Regression, "answers correctness head, answers correctness base"},
		{"error of what is unchanged", errors, verdict.Unchanged, false, false, Unchanged, "answers correctness head"},
		{"error without a base", errors, verdict.NoBase, false, false, Uncompared, "answers correctness head"},
		{"profile limit", least, verdict.Changed, false, false, Limit, "answers profile head ncu.achieved_occupancy"},
		{"profile of both", waves, verdict.Changed, false, false, Regression, "answers profile head ncu.waves, answers profile base ncu.waves"},
		{"profile of what is new", waves, verdict.New, false, false, Fresh, "answers profile head ncu.waves"},
		{"profile of what is unchanged", waves, verdict.Unchanged, false, false, Unchanged, "answers profile head ncu.waves"},
		{"profile of what is unchanged, forced", waves, verdict.Unchanged, true, false, Unchanged, "answers profile head ncu.waves"},
		{"time limit", below, verdict.Changed, false, false, TimeLimit, "answers latency head" + aaBoth},
		{"time limit of what is new", below, verdict.New, false, false, TimeLimit, "answers latency head, shown calibration head"},
		{"time limit, stored", below, verdict.Changed, false, true, TimeLimit, "answers latency head" + aaBoth},
		{"time of both", time, verdict.Changed, false, false, Experiment, "answers latency head+base, instead latency head, instead sessions base, shown latency head" + aaBoth},
		{"time of what is unchanged", time, verdict.Unchanged, false, false, Unchanged, "answers latency head"},
		{"time of what is unchanged, forced", time, verdict.Unchanged, true, false, Experiment,
			"answers latency head+head, instead latency head, instead sessions head, shown latency head, shown calibration head, shown calibration head"},
		{"time of what is new", time, verdict.New, false, false, Fresh, "answers latency head"},
		{"time without a base", time, verdict.NoBase, false, false, Uncompared, "answers latency head"},
		{"time against sessions", time, verdict.Changed, false, true, History, "answers sessions base, answers latency head"},
		{"time against sessions, unchanged", time, verdict.Unchanged, true, true, Unchanged, "answers latency head"},
		{"ratio", ratio, verdict.Changed, false, false, Ratio, "first correctness ref, answers latency head+ref, shown latency head"},
		{"ratio of what is new", ratio, verdict.New, false, false, Ratio, "first correctness ref, answers latency head+ref, shown latency head"},
		{"ratio of what is unchanged", ratio, verdict.Unchanged, false, true, Ratio, "first correctness ref, answers latency head+ref, shown latency head"},

		// Advice is read from what other rules ask for.
		{"tail", tail, verdict.Changed, false, false, Experiment, "shown latency head+base, instead latency head, instead sessions base, shown latency head"},
		{"tail of what is unchanged", tail, verdict.Unchanged, false, false, Unchanged, "shown latency head"},
		{"tail of what is new", tail, verdict.New, false, false, Fresh, "shown latency head"},
		{"limit of a tail", ceil, verdict.Changed, false, false, TimeLimit, "shown latency head"},
	} {
		with := []string{c.rule}
		if strings.Contains(c.rule, "p99") {
			with = append(with, "{id: b, metric: latency.mean, max_regression: 2%}")
		}
		p := Make(policyOf(t, c.stored, nil, with...), []*Subject{subject("op/k", c.state, "small")}, Options{Force: c.force, Now: now})
		q := of(p, "a")[0]
		if got := words(q); q.Kind != c.kind || got != c.needs {
			t.Errorf("%s: %s, %s\nwant %s, %s", c.name, q.Kind, got, c.kind, c.needs)
		}
		test := q.Kind == Experiment || q.Kind == History || q.Kind == Ratio
		if (q.Test != nil) != test || test && (q.Test.Bound != q.Rule.Bound || q.Test.Summary != q.Rule.Metric.Summary || q.Test.CacheState != q.Rule.Metric.CacheState) {
			t.Errorf("%s: it is tested by %+v", c.name, q.Test)
		}
		if want := test && !q.Rule.Metric.Advice; q.Gated() != want {
			t.Errorf("%s: gated %v", c.name, q.Gated())
		}
		if correct := of(p, "correctness"); len(correct) != 1 || correct[0].Kind != Correct || words(correct[0]) != "answers correctness head" {
			t.Errorf("%s: correctness is not asked", c.name)
		}
	}
	p := Make(policyOf(t, false, nil, `{id: a, metric: latency.typical, limit: 1us, kernels: ["op/other"]}`), []*Subject{subject("op/k", verdict.Changed, "small")}, Options{})
	if len(of(p, "a")) != 0 || len(p.Questions) != 1 {
		t.Errorf("another kernel's rule: %v", p.Questions)
	}
}

// TestAdviceAsksForNoProcesses: a rule on a tail costs no GPU time of code that
// did not change.
func TestAdviceAsksForNoProcesses(t *testing.T) {
	p := policyOf(t, false, nil, "{id: a, metric: latency.p99, max_regression: 2%}", `{id: b, metric: latency.mean, max_regression: 2%, kernels: ["op/other"]}`)
	for _, state := range []verdict.State{verdict.Unchanged, verdict.Changed, verdict.New} {
		asked, l := bound(t, p, Options{}, []evidence.Machine{h200}, subject("op/k", state, "small")), &evidence.Ledger{}
		answer(asked.Next(l), l)
		if next := asked.Next(l); next != nil {
			t.Errorf("%s: %+v", state, next.Tasks)
		}
	}
}

// TestSettled: what no evidence can change is a question as well, and the only
// one of a kernel that is gone or does not build.
func TestSettled(t *testing.T) {
	broken := subject("op/k", verdict.Changed, "small")
	broken.Head = Side{Why: "it does not build", Blame: true}
	lost := subject("op/k", verdict.Unchanged, "small")
	lost.Lost = []Loss{{Cause: GoneCase, Case: "large"}, {Cause: LeftOut, Entry: "scan"}, {Cause: LeftOut, Entry: "sort"}}
	for _, c := range []struct {
		name    string
		subject *Subject
		options Options
		alone   bool
		want    string
	}{
		{"gone", subject("op/k", verdict.Gone), Options{}, true, "present: the kernel is gone"},
		{"does not build", broken, Options{}, true, "builds: the head was not built"},
		{"no base", subject("op/k", verdict.NoBase, "small"), Options{NoBase: "it is shallow"}, false, "present: the base is not known"},
		{"nobody asked for a base", subject("op/k", verdict.NoBase, "small"), Options{NoBase: "--base none", LimitsOnly: true}, false, ""},
		{"no case", subject("op/k", verdict.New), Options{}, false, "correctness: the kernel has no case"},
		{"lost", lost, Options{}, false, "present: a case is gone, present: entries: leaves a function out, present: entries: leaves a function out"},
	} {
		p := bound(t, policyOf(t, false, nil, rules...), c.options, nil, c.subject)
		var got []string
		for _, q := range p.Questions {
			if (q.Kind == Settled) != (q.Cause != "") || q.Kind == Settled && (len(q.Needs) > 0 || q.Weight != verdict.Red) {
				t.Errorf("%s: %+v", c.name, q)
			}
			if q.Kind == Settled {
				got = append(got, q.Name+": "+string(q.Cause))
			}
		}
		if strings.Join(got, ", ") != c.want || c.alone != (len(p.Questions) == len(got)) {
			t.Errorf("%s: %s of %d questions, want %s", c.name, got, len(p.Questions), c.want)
		}
		distinctIDs(t, p)
	}
}

func distinctIDs(t *testing.T, p Plan) {
	t.Helper()
	ids, texts := map[ID]bool{}, map[string]bool{}
	for _, q := range p.Questions {
		text := q.ID().String()
		if ids[q.ID()] || texts[text] {
			t.Errorf("two questions are %s", text)
		}
		ids[q.ID()], texts[text] = true, true
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q cannot be printed", text)
		}
		if q.Subject.Name == "" || q.Name == "" || q.Kind == "" || q.Subject == nil {
			t.Errorf("%+v names nothing", q.ID())
		}
	}
}

func TestIDsAreReadable(t *testing.T) {
	id := ID{Rule: "latency", Kind: Experiment, Kernel: "op/k", Arch: "sm_90", Case: "small", Machine: "h200"}
	if got := id.String(); got != "latency (experiment) of op/k for sm_90, case small on h200" {
		t.Error(got)
	}
	if got := (ID{Rule: "present", Kind: Settled, Kernel: "op/k", Entry: "scan"}).String(); got != "present (settled) of op/k, entry scan" {
		t.Error(got)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.Intn(len(from))] }

// randomPlan is of a random policy and random subjects, on random machines.
func randomPlan(t *testing.T, r *rand.Rand) Plan {
	t.Helper()
	stored := r.Intn(4) == 0
	from := slices.Clone(rules)
	if stored {
		from = withoutAdvice()
	}
	if r.Intn(2) == 0 {
		from = append(from, `{id: other, metric: latency.mean, relative_to: op/other, limit: 2}`, `{id: some, metric: ncu.waves, max_regression: 1, kernels: ["op/k0"]}`)
	}
	p := policyOf(t, stored, pick(r, nil, []string{"h200"}, []string{"h200", "a100"}, []string{"h200", "b300"}), from...)
	var subjects []*Subject
	for i := range 1 + r.Intn(4) {
		s := subject(pick(r, "op", "mul")+fmt.Sprintf("/k%d", i), pick(r, verdict.Changed, verdict.Changed, verdict.Unchanged, verdict.New, verdict.Gone, verdict.NoBase),
			[]string{"small", "large", "odd"}[:r.Intn(4)]...)
		s.Arch = pick(r, "sm_90", "sm_90", "sm_80", "sm_120")
		s.References["op/other"] = Side{Identity: code("ref", "op/other")}
		switch r.Intn(10) {
		case 0:
			s.Head = Side{Why: "it does not build"}
		case 1:
			s.Base = Side{Why: "the base does not build"}
		case 2:
			s.References["op/other"] = Side{Why: "the reference does not build"}
		}
		if s.State == verdict.Changed && r.Intn(4) == 0 {
			s.Lost = []Loss{{Case: "gone"}, {Entry: "a"}, {Entry: "b"}}
		}
		subjects = append(subjects, s)
	}
	if len(subjects) > 1 && r.Intn(3) == 0 { // one more kernel of the same code
		twin := *subjects[0]
		twin.Name = twin.Op + "/twin"
		subjects = append(subjects, &twin)
	}
	known := []evidence.Machine{h200, h100, a100}
	r.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	return bound(t, p, Options{NoBase: "it is shallow", Force: r.Intn(4) == 0}, known[:r.Intn(4)], subjects...)
}

// rounds of every law; each starts from a seed that a failure prints.
const rounds = 200

func laws(t *testing.T, law func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	seed := time.Now().UnixNano()
	for i := range rounds {
		s := seed + int64(i)
		law(t, rand.New(rand.NewSource(s)))
		if t.Failed() {
			t.Fatalf("seed %d", s)
		}
	}
}

func TestPlansAreWellFormed(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p := randomPlan(t, r)
		wellFormed(t, p)
		moved, err := p.Move(pick(r, h200, h100, a100), &evidence.Ledger{})
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, moved)
		if len(moved.Questions) != len(p.Questions) || moved.Family() != p.Family() {
			t.Errorf("%d questions become %d, a family of %d becomes %d", len(p.Questions), len(moved.Questions), p.Family(), moved.Family())
		}
	})
}

// wellFormed holds the laws of every plan: each subject has a question, all of
// them side by side in the subjects' order; identities differ; equal needs on
// a machine are one; only a family's tests are gated; nothing holds a zero byte.
func wellFormed(t *testing.T, p Plan) {
	t.Helper()
	distinctIDs(t, p)
	var order []*Subject
	for _, q := range p.Questions {
		if len(order) == 0 || order[len(order)-1] != q.Subject {
			order = append(order, q.Subject)
		}
	}
	if !slices.Equal(order, p.Subjects) {
		t.Errorf("the questions are not those of the %d subjects in their order", len(p.Subjects))
	}
	type asked struct {
		of            *Subject
		machine, need string
	}
	seen := map[asked]*evidence.Need{}
	family := 0
	for i := range p.Questions {
		q := &p.Questions[i]
		if q.Gated() {
			family++
		}
		if q.Gated() != (q.Test != nil && !q.Rule.Metric.Advice) || q.Kind == Settled && q.Test != nil {
			t.Errorf("%s: gated %v", q, q.Gated())
		}
		for _, n := range q.Needs {
			text := fmt.Sprintf("%+v", *n)
			at := asked{q.Subject, q.Machine, text}
			if same := seen[at]; same != nil && same != n {
				t.Errorf("%s asks again for %s", q, text)
			}
			if seen[at] = n; strings.Contains(text, "\x00") {
				t.Errorf("%q holds a zero byte", text)
			}
			if n.Tier != evidence.Static && n.At.Machine != q.On || n.Compares() && n.Base.Machine != q.On {
				t.Errorf("%s is on %q and asks for %+v", q, q.On, *n.Key)
			}
		}
	}
	if p.Family() != family {
		t.Errorf("the family counts %d tests of %d", p.Family(), family)
	}
}

// TestFamilyCountsWhatIsNotStopped, measured or not.
func TestFamilyCountsWhatIsNotStopped(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, rules...), Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small", "large"), subject("op/u", verdict.Unchanged, "small"))
	// latency, mean and ratio of each of two cases, and the ratio of what is unchanged.
	if p.Family() != 7 {
		t.Errorf("%d", p.Family())
	}
	for _, q := range of(p, "latency") {
		q.Stopped = "stopped"
	}
	for _, q := range of(p, "tail") {
		q.Stopped = "stopped"
	}
	if p.Family() != 5 {
		t.Errorf("%d after two were stopped", p.Family())
	}
}

func TestCalibrationsAreOfEveryCaseOnce(t *testing.T) {
	broken := subject("op/b", verdict.Changed, "small")
	broken.Head = Side{Why: "it does not build"}
	old := subject("op/old", verdict.Changed, "small")
	old.Arch = "sm_80"
	p := Make(policyOf(t, false, []string{"h200"}, rules...), []*Subject{subject("op/k", verdict.Changed, "small", "large"), broken, old}, Options{Now: now})
	var got []string
	for _, task := range p.Calibrations(h200) {
		got = append(got, task.Subject.Name+" "+task.At.Case)
		if task.Tier != evidence.Calibration || task.At.Machine != h200.Key() || task.At.Identity != task.Subject.Head.Identity || task.Compares() {
			t.Errorf("%+v", task)
		}
	}
	if strings.Join(got, ", ") != "op/k small, op/k large" || len(p.Calibrations(h100)) != 0 {
		t.Errorf("%v, and on a machine that the policy does not name %v", got, p.Calibrations(h100))
	}
}

// TestStandInsAreReadWhereTheOtherArmFailed and nowhere else.
func TestStandInsAreReadWhereTheOtherArmFailed(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, "{id: latency, metric: latency.typical, max_regression: 2%}"), Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small"))
	q := of(p, "latency")[0]
	pair := q.Need(evidence.Answers, evidence.Latency).Key
	put := func(l *evidence.Ledger, f *evidence.Failure) *evidence.Ledger {
		l.Put(&evidence.Record{Tier: evidence.Latency, Address: pair.At, Base: &pair.Base, Failure: f, Experiment: &evidence.Experiment{Stopped: "resolved"}}, evidence.Measured)
		return l
	}
	other := &evidence.Failure{Kind: evidence.Tool, Message: "the base cannot be timed", OtherArm: true}
	for name, c := range map[string]struct {
		l    *evidence.Ledger
		want bool
	}{
		"nothing is known":     {&evidence.Ledger{}, false},
		"measured":             {put(&evidence.Ledger{}, nil), false},
		"the head failed":      {put(&evidence.Ledger{}, &evidence.Failure{Kind: evidence.Crash}), false},
		"the other arm failed": {put(&evidence.Ledger{}, other), true},
	} {
		sessions, alone, ok := q.StandIn(c.l)
		read := slices.ContainsFunc(p.Needs(c.l), func(n *evidence.Need) bool { return n.Use == evidence.Instead })
		if ok != c.want || read != c.want || ok && (sessions.Tier != evidence.Sessions || sessions.At.Identity != q.Subject.Base.Identity || alone.Tier != evidence.Latency || alone.Compares()) {
			t.Errorf("%s: %v, read %v", name, ok, read)
		}
	}
	// The head is timed by itself only where there are sessions to hold it against.
	l := put(&evidence.Ledger{}, other)
	answer(p.Next(l), l) // correctness
	if next := p.Next(l); next != nil {
		t.Errorf("no session, and still %+v", next.Tasks)
	}
	if keys := p.Lacks(l); len(keys) != 0 {
		t.Errorf("nothing can be measured, and still %+v is asked for", keys)
	}
	sessions, alone, _ := q.StandIn(l)
	l.Put(&evidence.Record{Tier: evidence.Sessions, Address: sessions.At}, evidence.Reused)
	if next := p.Next(l); next == nil || len(next.Tasks) != 1 || next.Tasks[0].Key != *alone.Key || next.Together() {
		t.Errorf("sessions, and no time to hold against them: %+v", next)
	}
	if keys := p.Lacks(l); !slices.Equal(keys, []evidence.Key{*alone.Key}) {
		t.Errorf("the head's time is not asked for: %+v", keys)
	}
}
