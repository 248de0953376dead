package ncu

import "strings"

// A chip is a family of GPUs that offers one set of counters.
type chip uint8

const (
	unknownChip chip = iota
	tu102            // cc 7.5, Turing
	ga100            // cc 8.0, A100
	ga10x            // cc 8.6 and 8.7
	ad10x            // cc 8.9, Ada
	gh100            // cc 9.0, Hopper
	gb100            // cc 10.0 and 10.3, Blackwell B200 and B300
	gb20x            // cc 12.0 and 12.1, Blackwell RTX and GB10
)

var chipNames = [...]string{"unknown", "tu102", "ga100", "ga10x", "ad10x", "gh100", "gb100", "gb20x"}

func (c chip) String() string { return chipNames[c] }

var chips = []chip{tu102, ga100, ga10x, ad10x, gh100, gb100, gb20x}

// chipOf returns the chip of a compute capability. Both "9.0" and the
// architecture names sm_90 and sm_90a are understood.
func chipOf(cc string) chip {
	if arch, ok := strings.CutPrefix(cc, "sm_"); ok {
		arch = strings.TrimRight(arch, "af")
		if len(arch) < 2 {
			return unknownChip
		}
		cc = arch[:len(arch)-1] + "." + arch[len(arch)-1:]
	}
	switch cc {
	case "7.5":
		return tu102
	case "8.0":
		return ga100
	case "8.6", "8.7":
		return ga10x
	case "8.9":
		return ad10x
	case "9.0":
		return gh100
	case "10.0", "10.3":
		return gb100
	case "12.0", "12.1":
		return gb20x
	}
	return unknownChip
}
