package plan

import "github.com/kernelgate/gate/gate/internal/evidence"

// An Answer says where the answer to a question comes from.
type Answer string

// Settled questions need no evidence. Missing evidence can neither be found nor
// measured.
const (
	IsSettled  Answer = "settled"
	IsBuilt    Answer = "built" // the compiler's report
	IsRecorded Answer = "recorded"
	IsMeasured Answer = "measured now"
	IsStopped  Answer = "stopped" // by a tier that failed
	IsMissing  Answer = "missing"
)

// An Asked is a question with where its answer comes from.
type Asked struct {
	ID
	Answer Answer `json:"answer"`
}

// previewSchema names the layout of a Preview.
const previewSchema = "gate/preview/v1"

// A Preview is what a check would ask and measure.
type Preview struct {
	Schema     string  `json:"schema"`
	Questions  []Asked `json:"questions"`
	Measured   int     `json:"measured"`    // records
	GPUSeconds float64 `json:"gpu_seconds"` // about
}

// Seconds that the parts of a measurement take, as seen on an H200 with the
// attention kernels: a process starts CUDA, and each kernel in it is loaded,
// warmed up and timed. A profile of one case takes 2.4 s, and nearly all of that is
// the start of ncu, which the cases of a kernel share.
const (
	checkSeconds   = 1.9 // a case: every input class, against the reference
	ncuSeconds     = 2.1
	profileSeconds = 0.3 // a case
	searchSeconds  = 3   // a case under one tool
	startSeconds   = 0.3
	timeSeconds    = 0.2
	alonePasses    = 10
	usualPairs     = 8 // most unchanged kernels are decided by then
)

// seconds is about how long a step occupies the GPU.
func (s Step) seconds() float64 {
	n := float64(len(s.Tasks))
	process := startSeconds + n*timeSeconds
	switch {
	case s.Together():
		return (1 + 2*usualPairs) * process // after a pilot
	case s.Tier == evidence.Latency:
		return alonePasses * process
	case s.Tier == evidence.Profile:
		return s.contenders()*ncuSeconds + n*profileSeconds
	case s.Tier == evidence.Sanitizer:
		return n * searchSeconds
	}
	return n * checkSeconds
}

// contenders are the kernels of a step, each with all its cases.
func (s Step) contenders() float64 {
	type contender struct {
		code              evidence.Identity
		kernel, reference string
	}
	seen := map[contender]bool{}
	for _, t := range s.Tasks {
		seen[contender{t.At.Identity, t.Subject.Name, t.Reference}] = true
	}
	return float64(len(seen))
}

// Preview says what would answer each question. It assumes that what is checked
// is correct, so that nothing is stopped.
func (p Plan) Preview(l *evidence.Ledger) Preview {
	out := Preview{Schema: previewSchema, Questions: []Asked{}}
	for i := range p.Questions {
		q := &p.Questions[i]
		a := Asked{ID: q.ID(), Answer: IsMissing}
		switch {
		case q.Kind == Settled:
			a.Answer = IsSettled
		case q.Tier == evidence.Static && q.Answered(l):
			a.Answer = IsBuilt
		case q.Answered(l):
			a.Answer = IsRecorded
		case q.Stopped != "":
			a.Answer = IsStopped
		case len(p.lacks(q, l)) > 0:
			a.Answer = IsMeasured
		}
		out.Questions = append(out.Questions, a)
	}
	assumed := l.Clone()
	for s := p.Next(assumed); s != nil; s = p.Next(assumed) {
		out.GPUSeconds += s.seconds()
		out.Measured += len(s.Tasks)
		for _, t := range s.Tasks {
			assumed.Put(assumedCorrect(t.Key), evidence.Measured)
		}
		assumed.Try(s.Keys()...)
	}
	return out
}

// assumedCorrect stands for a record that is not measured yet.
func assumedCorrect(k evidence.Key) *evidence.Record {
	zero := 0.0
	r := &evidence.Record{Tier: k.Tier, Tool: k.Tool, Address: k.At,
		Checks: []evidence.Check{{Status: "pass", Elements: 1, RelativeError: &zero, Guard: "ok", Repeatable: true}}}
	if k.Compares() {
		r.Base = &k.Base
	}
	return r
}
