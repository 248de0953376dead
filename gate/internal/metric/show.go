package metric

import (
	"math"
	"strconv"
)

// Show writes a figure with its unit as a person reads it.
func Show(x float64, unit string) string {
	switch unit {
	case "ns":
		return showTime(x)
	case "byte", "byte/block":
		return showNumber(x) + " B"
	case "%":
		return strconv.FormatFloat(x, 'f', 1, 64) + " %"
	case "", "registers/thread", "register/thread", "inst", "cycle", "block", "warp", "sector":
		return showNumber(x)
	}
	return showNumber(x) + " " + unit
}

func showTime(ns float64) string {
	switch {
	case math.Abs(ns) >= 1e6:
		return strconv.FormatFloat(ns/1e6, 'f', 3, 64) + " ms"
	case math.Abs(ns) >= 1e3:
		return strconv.FormatFloat(ns/1e3, 'f', 2, 64) + " µs"
	}
	return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
}

func showNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return group(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// group sets thin digits apart: 1234567 is 1,234,567.
func group(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
