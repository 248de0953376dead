package roof

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Evaluate computes a sum of products, "8*B*S + 4*S", of whole numbers and sizes.
// It is exact, and above 0: what does not fit is an error.
func Evaluate(text string, dims []string, size func(dim string) int64) (int64, error) {
	var sum uint64
	for product := range strings.SplitSeq(text, "+") {
		p := uint64(1)
		for factor := range strings.SplitSeq(product, "*") {
			n, err := number(strings.TrimSpace(factor), text, dims, size)
			if err != nil {
				return 0, err
			}
			high, low := bits.Mul64(p, n)
			if high > 0 {
				return 0, tooLarge(text)
			}
			p = low
		}
		var carry uint64
		if sum, carry = bits.Add64(sum, p, 0); carry > 0 {
			return 0, tooLarge(text)
		}
	}
	switch {
	case sum > math.MaxInt64:
		return 0, tooLarge(text)
	case sum == 0:
		return 0, fmt.Errorf("%q is 0: leave out what is not known", text)
	}
	return int64(sum), nil
}

func tooLarge(text string) error { return fmt.Errorf("%q is above 2^63", text) }

// number is a factor: a whole number, or the size of a dimension.
func number(factor, text string, dims []string, size func(dim string) int64) (uint64, error) {
	n, err := strconv.ParseUint(factor, 10, 63)
	switch isDim := slices.Contains(dims, factor); {
	case err == nil && isDim:
		return 0, fmt.Errorf("%q is ambiguous: %s is a number and a dimension", text, factor)
	case isDim:
		return uint64(size(factor)), nil
	case err == nil:
		return n, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, tooLarge(text)
	}
	return 0, fmt.Errorf("%q is not a sum of products of whole numbers and dimensions: %q is neither a number nor one of %s", text, factor, strings.Join(dims, ", "))
}
