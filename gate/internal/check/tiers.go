package check

import (
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
)

var tierOrder = []evidence.Tier{evidence.Static, evidence.Correctness, evidence.Profile, evidence.Latency}

// Tiers reads a list of tiers such as "static,correctness". A tier is worth
// nothing without those before it.
func Tiers(text string) ([]evidence.Tier, error) {
	if text == "" {
		return nil, nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		if i >= len(tierOrder) || name != string(tierOrder[i]) {
			return nil, exit.Usagef("static; static,correctness; static,correctness,profile; or all four, with latency", "--tiers cannot be %q: tiers come in their order, and none is left out before another", text)
		}
	}
	return tierOrder[:len(names)], nil
}
