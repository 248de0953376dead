package compare

// A Decision is what an experiment proved. The zero value is Inconclusive.
type Decision uint8

// The verdicts of an experiment.
const (
	Inconclusive Decision = iota // nothing was proved
	Regressed                    // the effect exceeds the tolerance
	Pass                         // the effect is below detect
	Improved                     // a pass that is faster by more than the tolerance (advisory)
)

var verdictNames = map[Decision]string{Inconclusive: "inconclusive", Regressed: "regressed", Pass: "pass", Improved: "improved"}

// String returns the verdict as a word.
func (v Decision) String() string { return nameOf(verdictNames, v) }

// A Reason says why a verdict is what it is, as a code.
type Reason uint8

// The reasons.
const (
	notMeasured     Reason = iota // no round
	tooFewPairs                   // no look was reached, or none that can decide among so many tests
	invalidProcess                // a time is missing, not finite, zero or negative
	zeroVariance                  // an arm gave one value only: a coarse timer, or nothing was measured
	suspectCollapse               // at least 90 % faster and nobody has explained it
	notDecided                    // measured, and neither limit is proven
	aboveTolerance
	belowDetect
	provenFaster
)

var reasonNames = map[Reason]string{
	notMeasured: "not-measured", tooFewPairs: "too-few-pairs", invalidProcess: "invalid-process",
	zeroVariance: "zero-variance", suspectCollapse: "collapse", notDecided: "undecided",
	aboveTolerance: "above-tolerance", belowDetect: "below-detect", provenFaster: "faster",
}

// String returns the code as a word.
func (r Reason) String() string { return nameOf(reasonNames, r) }
