package ncu

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var (
	errAmbiguous = errors.New("could be a decimal fraction or a number with thousands separators")
	errHalfKnown = errors.New("is neither a number in a known notation nor a word")
)

// parseCell reads one printed metric value; the result is in the base unit. A
// cell that could mean two numbers is an error, because a guess is wrong by a
// factor of 1000.
func parseCell(text string, u unit) (Value, error) {
	if n, ok := fastNumber(text, u.exp); ok {
		return Value{Kind: Number, Number: n, Unit: u.base}, nil
	}
	scalar, _ := splitInstances(text)
	if v, ok := absentCell(scalar); ok {
		return v, nil
	}
	if !numberLike(scalar) {
		return Value{Kind: Text, Text: text, Unit: u.base}, nil
	}
	plain, err := plainNumber(scalar)
	if err != nil {
		return Value{}, err
	}
	n, err := scaled(plain, u.exp)
	if err != nil {
		return Value{}, errHalfKnown
	}
	if math.IsInf(n, 0) {
		return missing(ReasonInfinite), nil
	}
	return Value{Kind: Number, Number: n, Unit: u.base}, nil
}

// powers are the powers of ten that a float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// fastNumber reads the commonest notation, digits with commas between groups of
// three and a decimal point, times ten to the power exp. At most 15 digits and
// one multiplication or division of exact operands give the nearest float64, as
// the slower way does. Everything else is left to that.
func fastNumber(s string, exp int) (float64, bool) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	var mantissa uint64
	digits, group, point, grouped := 0, 0, -1, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + uint64(c-'0')
			digits++
			group++
		case c == ',' && point < 0 && (grouped && group == 3 || !grouped && group > 0 && group <= 3 && s[0] != '0'):
			grouped, group = true, 0
		case c == '.' && point < 0 && digits > 0 && (!grouped || group == 3):
			point = digits
		default:
			return 0, false
		}
	}
	decimals := 0
	switch {
	case digits == 0 || digits > 15:
		return 0, false
	case point < 0 && grouped && group != 3:
		return 0, false
	case point >= 0:
		decimals = digits - point
		if decimals == 0 || decimals == 3 && !grouped && point <= 3 && s[0] != '0' {
			return 0, false
		}
	}
	out, ok := exactPower(mantissa, exp-decimals)
	if neg {
		out = -out
	}
	return out, ok
}

// exactPower multiplies a mantissa of at most 15 digits by ten to the power exp
// where one rounding is enough.
func exactPower(mantissa uint64, exp int) (float64, bool) {
	switch n := float64(mantissa); {
	case exp < -22 || exp > 22:
		return 0, false
	case exp < 0:
		return n / powers[-exp], true
	default:
		return n * powers[exp], true
	}
}

// scaled parses plain times ten to the power exp. The power goes into the text,
// so that 131.2 Kbyte is the float64 nearest to 131200.
func scaled(plain string, exp int) (float64, error) {
	if exp == 0 {
		n, err := strconv.ParseFloat(plain, 64)
		return n, rangeIsInf(err)
	}
	mantissa, power := plain, 0
	if i := strings.IndexAny(plain, "eE"); i >= 0 {
		p, err := strconv.Atoi(plain[i+1:])
		if err != nil {
			return 0, err
		}
		mantissa, power = plain[:i], p
	}
	n, err := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(power+exp), 64)
	return n, rangeIsInf(err)
}

// rangeIsInf drops a range error: ParseFloat has returned an infinity then.
func rangeIsInf(err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return nil
	}
	return err
}

// absentCell recognises the ways in which ncu prints that it has no value.
func absentCell(s string) (Value, bool) {
	if s == "" {
		return missing(ReasonEmpty), true
	}
	if c := s[0]; c >= '0' && c <= '9' && !strings.Contains(s, "#") {
		return Value{}, false
	}
	if strings.HasPrefix(s, "(!)") {
		return missing(ReasonInvalid + ": " + strings.TrimSpace(s[3:])), true
	}
	switch strings.ToLower(strings.TrimPrefix(s, "-")) {
	case "n/a":
		return missing(ReasonNotAvailable), true
	case "no data":
		return missing(ReasonNoData), true
	case "nan", "nan(ind)", "nan(snan)", "1.#qnan", "1.#ind":
		return missing(ReasonNaN), true
	case "inf", "infinity", "1.#inf":
		return missing(ReasonInfinite), true
	}
	return Value{}, false
}

// numberLike says whether s starts like a number and holds nothing but what
// numbers are made of. Such a text is read as a number or refused.
func numberLike(s string) bool {
	d := strings.TrimPrefix(s, "-")
	if d == "" || d[0] < '0' || d[0] > '9' {
		return false
	}
	for i, r := range d {
		switch {
		case r >= '0' && r <= '9', r == '.', r == ',', r == '\'', isGroupSpace(r):
		case (r == 'e' || r == 'E') && i > 0:
		case (r == '+' || r == '-') && i > 0 && (d[i-1] == 'e' || d[i-1] == 'E'):
		default:
			return false
		}
	}
	return true
}

// isGroupSpace reports the spaces that locales put between groups of digits.
func isGroupSpace(r rune) bool {
	return r == ' ' || r == '\u00a0' || r == '\u202f' || r == '\u2009' || r == '\u2019'
}

// plainNumber rewrites a printed number in Go's notation.
func plainNumber(s string) (string, error) {
	if !strings.ContainsAny(s, ",.' \u00a0\u202f\u2009\u2019") {
		return s, nil
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i:]
	}
	plain, err := ungroup(mantissa)
	if err != nil {
		return "", err
	}
	if exponent != "" && plain != mantissa {
		return "", errHalfKnown // grouped digits never carry an exponent
	}
	return sign + plain + exponent, nil
}

// ungroup removes thousands separators and turns a decimal comma into a point.
// The last separator decides: a different one before it, or a repetition, makes
// its role certain. One single point before exactly three digits stays open:
// 117.344 is a fraction in English and 117344 in German.
func ungroup(s string) (string, error) {
	last, size, kinds, count := lastSeparator(s)
	if count == 0 {
		return s, nil
	}
	head, tail := s[:last], s[last+size:]
	sep := s[last : last+size]
	switch {
	case kinds > 2:
		return "", errHalfKnown
	case kinds == 2: // the last one is the decimal sign, and it occurs once
		if sep != "." && sep != "," || strings.Contains(head, sep) {
			return "", errHalfKnown
		}
		whole, err := dropGroups(head)
		return whole + "." + tail, err
	case count > 1 || sep != "." && sep != ",":
		return dropGroups(s)
	}
	grouped := len(tail) == 3 && len(head) <= 3 && head[0] != '0'
	switch {
	case !grouped:
		if tail == "" {
			return "", errHalfKnown
		}
		return head + "." + tail, nil
	case sep == ",": // ncu prints two or six decimals, so three digits are a group
		return head + tail, nil
	}
	return "", errAmbiguous
}

// lastSeparator returns the place and width of the last separator, how many
// different ones there are, and how many in all.
func lastSeparator(s string) (last, size, kinds, count int) {
	last = -1
	var seen [4]rune
	for i, r := range s {
		if r >= '0' && r <= '9' {
			continue
		}
		last, size = i, len(string(r))
		count++
		known := false
		for _, k := range seen[:kinds] {
			known = known || k == r
		}
		if !known && kinds < len(seen) {
			seen[kinds] = r
			kinds++
		}
	}
	return last, size, kinds, count
}

// dropGroups removes the one kind of separator in s, whose groups must be of
// three digits, or of two before the last as in India.
func dropGroups(s string) (string, error) {
	groups := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	separators := 0
	for _, r := range s {
		if r < '0' || r > '9' {
			separators++
		}
	}
	if len(groups) == 0 || separators != len(groups)-1 {
		return "", errHalfKnown
	}
	if len(groups) == 1 {
		return s, nil
	}
	last := len(groups) - 1
	if len(groups[0]) > 3 || len(groups[last]) != 3 || groups[0][0] == '0' {
		return "", errHalfKnown
	}
	width := len(groups[last])
	if len(groups) > 2 {
		width = len(groups[1])
	}
	for _, g := range groups[1:last] {
		if len(g) != width || width < 2 || width > 3 {
			return "", errHalfKnown
		}
	}
	if width == 2 && len(groups[0]) > 2 {
		return "", errHalfKnown
	}
	return strings.Join(groups, ""), nil
}
