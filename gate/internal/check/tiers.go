package check

import (
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
)

// Tiers reads a list of tiers such as "static,correctness". A tier is worth
// nothing without those before it, except for the sanitizer's, which takes long
// and which no other tier needs.
func Tiers(text string) ([]evidence.Tier, error) {
	if text == "" {
		return nil, nil
	}
	var tiers []evidence.Tier
	rest := evidence.Order
	for name := range strings.SplitSeq(text, ",") {
		if len(rest) > 0 && rest[0] == evidence.Sanitizer && name != string(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 || name != string(rest[0]) {
			return nil, exit.Usagef("static; static,correctness; static,correctness,profile; static,correctness,profile,latency; each of the last three with sanitizer after correctness, too",
				"--tiers cannot be %q: tiers come in their order, and only sanitizer may be left out before another", text)
		}
		tiers, rest = append(tiers, rest[0]), rest[1:]
	}
	return tiers, nil
}
