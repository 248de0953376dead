package ncu

// Kind says what a Value is. The zero Kind is Missing, so that a Value nobody
// filled in can never be taken for the number 0.
type Kind uint8

const (
	// Missing means that the file holds no usable value: the metric was not
	// collected, or ncu printed n/a, nan or no data. Value.Reason says which.
	Missing Kind = iota
	// Unavailable means that the chip has no counter for a catalogue metric.
	// Only Derive, Aggregate and Median return it.
	Unavailable
	// Number means that Value.Number holds the value in Value.Unit.
	Number
	// Text means that Value.Text holds a word, such as CachePreferNone.
	Text
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Missing:
		return "missing"
	case Unavailable:
		return "unavailable"
	case Number:
		return "number"
	case Text:
		return "text"
	}
	return "invalid"
}

// A Value is one metric of one launch: a number, a word, or a named absence.
type Value struct {
	Kind   Kind
	Number float64 // finite; meaningful only when Kind is Number
	Text   string  // meaningful only when Kind is Text
	Unit   string  // base unit: ns, byte, hz, byte/s, cycle, %, …; "" for a plain count
	Reason string  // why, when Kind is Missing or Unavailable
}

// Float returns the number and whether there is one.
func (v Value) Float() (float64, bool) {
	return v.Number, v.Kind == Number
}

// The reasons that a reader gives for a missing value. Other reasons, such as
// those of Derive, name the metric that was absent.
const (
	ReasonNotCollected = "not collected"
	ReasonNotAvailable = "ncu printed n/a"
	ReasonNoData       = "ncu printed no data"
	ReasonNaN          = "ncu printed nan"
	ReasonInfinite     = "ncu printed an infinite value"
	ReasonEmpty        = "ncu printed an empty cell"
	ReasonInvalid      = "ncu marked the value as invalid with (!)"
	ReasonSeveral      = "ncu printed several values under this label"
)

func missing(reason string) Value { return Value{Kind: Missing, Reason: reason} }
