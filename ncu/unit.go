package ncu

import (
	"fmt"
	"strings"
)

// timeUnits maps every spelling of a time unit to its power of ten in ns, the
// unit that ncu itself uses as base. Releases up to 2023 spell the names out.
var timeUnits = map[string]int{
	"ns": 0, "nsecond": 0, "us": 3, "usecond": 3, "ms": 6, "msecond": 6, "s": 9, "second": 9,
}

// prefixes are decimal: ncu prints 131,200 byte as 131.2 Kbyte.
var prefixes = map[byte]int{'K': 3, 'M': 6, 'G': 9, 'T': 12, 'P': 15}

// scaledNouns are the units that auto scaling puts a prefix on. A unit outside
// this list is never scaled: ncu's unit texts do not always say what is counted.
var scaledNouns = map[string]bool{
	"byte": true, "hz": true, "sector": true, "request": true, "inst": true,
	"cycle": true, "warp": true, "thread": true, "block": true,
}

// A unit is a base unit and the power of ten that turns a value in the printed
// unit into one in the base unit.
type unit struct {
	base string
	exp  int
}

// baseUnit returns the base unit of a printed unit.
func baseUnit(printed string) unit {
	if plainUnits[printed] {
		return unit{printed, 0}
	}
	if exp, ok := timeUnits[printed]; ok {
		return unit{"ns", exp}
	}
	num, den, ratio := strings.Cut(printed, "/")
	base, exp := scaledNoun(num)
	if !ratio {
		return unit{base, exp}
	}
	if power, ok := timeUnits[den]; ok {
		if base == "cycle" { // cycles per time are a frequency
			return unit{"hz", exp + 9 - power}
		}
		return unit{base + "/s", exp + 9 - power}
	}
	den, power := scaledNoun(den)
	if exp != 0 && power != 0 {
		return unit{printed, 0} // never seen, and without a known meaning
	}
	// ncu divides the value and puts the prefix on the noun that can carry one,
	// although it stands in the denominator: 2,614 %/byte is 2.614 %/Kbyte.
	return unit{base + "/" + den, exp + power}
}

// printedUnit refuses what is not a unit. A number in its place says that columns
// were exchanged.
func printedUnit(printed string) (unit, error) {
	if numberLike(printed) {
		return unit{}, fmt.Errorf("the unit is a number, %q", clip(printed, 80))
	}
	return baseUnit(printed), nil
}

// plainUnits holds the commonest units that need no work.
var plainUnits = map[string]bool{
	"": true, "%": true, "ns": true, "byte": true, "hz": true, "cycle": true, "inst": true,
	"sector": true, "warp": true, "block": true, "thread": true, "request": true, "byte/s": true,
}

// scaledNoun splits a prefix off a unit that can carry one.
func scaledNoun(name string) (noun string, exp int) {
	if len(name) < 2 || scaledNouns[name] {
		return name, 0
	}
	power, ok := prefixes[name[0]]
	if ok && scaledNouns[name[1:]] {
		return name[1:], power
	}
	return name, 0
}
