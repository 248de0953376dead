package verdict

// A WaiverState says what became of a waiver.
type WaiverState string

// Used is the only state in which a waiver lets a rule be broken. One is
// Proposed that the change brings along and the base does not have.
const (
	Used     WaiverState = "used"
	Unused   WaiverState = "unused"
	Exceeded WaiverState = "exceeded"
	Expired  WaiverState = "expired"
	Proposed WaiverState = "proposed"
)

// A Waiver is one of the policy's, and what became of it.
type Waiver struct {
	Rule     string      `json:"rule"`
	Kernel   string      `json:"kernel"`
	Ceiling  string      `json:"ceiling,omitempty"`
	Until    string      `json:"until"` // the last day, UTC
	Owner    string      `json:"owner"`
	Reason   string      `json:"reason"`
	State    WaiverState `json:"state"`
	DaysLeft int         `json:"days_left"` // below 0: expired so many days ago
}

// soon is the number of days before the end of a waiver from which a report
// speaks of it.
const soon = 14

// EndsSoon reports whether a waiver is about to expire.
func (w Waiver) EndsSoon() bool { return w.DaysLeft >= 0 && w.DaysLeft <= soon }
