package policy

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// An Amount is a number with the unit it was written in: 8, 1e-3, 2%, 5pp, 50ns.
type Amount struct {
	Number float64 // in the base unit: ns, byte, fraction for %, points for pp
	Unit   string  // "", "%", "pp", "ns", "byte"
	Text   string  // as written
	Set    bool
}

var amountPattern = regexp.MustCompile(`^([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(%|pp|[A-Za-z]+)?$`)

var amountUnits = map[string]struct {
	unit  string
	scale float64
}{
	"": {"", 1}, "%": {"%", 0.01}, "pp": {"pp", 1},
	"ns": {"ns", 1}, "us": {"ns", 1e3}, "ms": {"ns", 1e6}, "s": {"ns", 1e9},
	"B": {"byte", 1}, "KB": {"byte", 1e3}, "MB": {"byte", 1e6}, "GB": {"byte", 1e9},
	"KiB": {"byte", 1 << 10}, "MiB": {"byte", 1 << 20}, "GiB": {"byte", 1 << 30},
}

// UnmarshalYAML reads a scalar; anything that is not a finite number of at
// least 0 with a known unit is refused.
func (a *Amount) UnmarshalYAML(n *yamlfile.Node) error {
	hint := ""
	bad := func(format string, args ...any) error {
		return &yamlfile.Error{Line: n.Line, Msg: fmt.Sprintf(format, args...), Advice: hint}
	}
	if n.Kind != yamlfile.Scalar {
		return bad("one amount such as 8, 1e-3, 2%%, 5pp or 50ns is needed here, not a list or a mapping")
	}
	m := amountPattern.FindStringSubmatch(n.Value)
	if m == nil {
		if point := strings.Replace(n.Value, ",", ".", 1); amountPattern.MatchString(point) {
			hint = fmt.Sprintf("did you mean %q?", point)
		}
		return bad("%q is not an amount such as 8, 1e-3, 2%%, 5pp or 50ns", n.Value)
	}
	u, ok := amountUnits[m[2]]
	if !ok {
		hint = unitMeant(m[1], m[2])
		return bad("%q has an unknown unit %q: known are %%, pp, ns, us, ms, s, B, KB, KiB, MB, MiB, GB, GiB", n.Value, m[2])
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil || math.IsInf(f*u.scale, 0) {
		return bad("%q is not a finite number", n.Value)
	}
	if f < 0 {
		return bad("%q is below 0: an amount says how much is accepted, its direction belongs to the metric", n.Value)
	}
	*a = Amount{Number: f * u.scale, Unit: u.unit, Text: n.Value, Set: true}
	return nil
}

// unitMeant is the amount with the unit that a word stands for: percent, NS,
// microseconds.
func unitMeant(number, word string) string {
	for _, spelled := range []struct{ word, unit string }{{"percent", "%"}, {"points", "pp"}, {"nanoseconds", "ns"}, {"microseconds", "us"},
		{"milliseconds", "ms"}, {"seconds", "s"}, {"bytes", "B"}} {
		if strings.EqualFold(word, spelled.word) || strings.EqualFold(word+"s", spelled.word) {
			return fmt.Sprintf("did you mean %q?", number+spelled.unit)
		}
	}
	for unit := range amountUnits {
		if strings.EqualFold(word, unit) {
			return fmt.Sprintf("did you mean %q?", number+unit)
		}
	}
	return ""
}

// InPercent turns "14%" into 14 for a metric in %: not the 14.000000000000002
// that the binary 0.14 makes of it, which a measured 14 does not reach.
func (a Amount) InPercent() float64 {
	if a.Unit == "%" {
		return math.Round(a.Number*1e11) / 1e9
	}
	return a.Number
}
