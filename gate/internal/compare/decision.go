package compare

// A Decision is what an experiment proved. The zero value is Inconclusive.
type Decision uint8

// The decisions about an experiment.
const (
	Inconclusive Decision = iota // nothing was proved
	Regressed                    // the effect exceeds the tolerance
	Pass                         // the effect is below detect
	Improved                     // a pass that is faster by more than the tolerance (advisory)
)

var decisionNames = map[Decision]string{Inconclusive: "inconclusive", Regressed: "regressed", Pass: "pass", Improved: "improved"}

// String returns the decision as a word.
func (v Decision) String() string { return nameOf(decisionNames, v) }

// A Reason says why a decision is what it is, as a code. Package judge has the words.
type Reason uint8

// The reasons.
const (
	NotMeasured     Reason = iota // no round
	TooFewPairs                   // no look was reached, or none that can decide among so many tests
	InvalidProcess                // a time is missing, not finite, zero or negative
	ZeroVariance                  // an arm gave one value only: a coarse timer, or nothing was measured
	SuspectCollapse               // at least 90 % faster and nobody has explained it
	NotDecided                    // measured, and neither limit is proven
	AboveTolerance
	BelowDetect
	ProvenFaster
)

var reasonNames = map[Reason]string{
	NotMeasured: "not-measured", TooFewPairs: "too-few-pairs", InvalidProcess: "invalid-process",
	ZeroVariance: "zero-variance", SuspectCollapse: "collapse", NotDecided: "undecided",
	AboveTolerance: "above-tolerance", BelowDetect: "below-detect", ProvenFaster: "faster",
}

// String returns the code as a word.
func (r Reason) String() string { return nameOf(reasonNames, r) }
