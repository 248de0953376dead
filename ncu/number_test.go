package ncu

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestParseCell(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       float64
		base       string
	}{
		{"0", "", 0, ""},
		{"-5", "%", -5, "%"},
		{"6,480,321,285.14", "hz", 6480321285.14, "hz"},
		{"1,234", "inst", 1234, "inst"},
		{"1234.567", "", 1234.567, ""},
		{"0.123", "", 0.123, ""},
		{"0.00", "%", 0, "%"},
		{"12.34", "%", 12.34, "%"},
		{"41.723050", "%", 41.72305, "%"},
		{"3995313115.40", "hz", 3995313115.40, "hz"},
		{"27.595.520", "byte", 27595520, "byte"},
		{"1.234.567,89", "", 1234567.89, ""},
		{"117.344,00", "", 117344, ""},
		{"65,77", "%", 65.77, "%"},
		{"0,123", "", 0.123, ""},
		{"1 234,56", "", 1234.56, ""},
		{"1\u00a0234\u00a0567", "", 1234567, ""},
		{"1\u202f234,5", "", 1234.5, ""},
		{"1'234.50", "", 1234.5, ""},
		{"12,34,567", "", 1234567, ""},
		{"12,34,567.25", "", 1234567.25, ""},
		{"1e+09", "", 1e9, ""},
		{"1.5e-05", "us", 1.5e-2, "ns"},
		{"56.06", "us", 56060, "ns"},
		{"30.86", "ms", 30860000, "ns"},
		{"2", "second", 2e9, "ns"},
		{"203264", "nsecond", 203264, "ns"},
		{"131.2", "Kbyte", 131200, "byte"},
		{"131.25", "Kbyte/block", 131250, "byte/block"},
		{"1.14", "Ghz", 1.14e9, "hz"},
		{"1.5", "Ksector", 1500, "sector"},
		{"2.5", "Tbyte/s", 2.5e12, "byte/s"},
		{"2.5", "byte/second", 2.5, "byte/s"},
		{"1.98", "cycle/nsecond", 1.98e9, "hz"},
		{"7", "cycle/second", 7, "hz"},
		{"7.25", "sector/ns", 7.25e9, "sector/s"},
		{"7.25", "sector/ms", 7250, "sector/s"},
		{"0.5", "%/Kbyte", 500, "%/byte"},
		{"0.5", "Kbyte/Kbyte", 0.5, "Kbyte/Kbyte"},
		{"3", "branches", 3, "branches"},
		{"3", "register/thread", 3, "register/thread"},
		{"158 (0: 100; 16: 58)", "inst", 158, "inst"},
		{"6.50 (1; 2; 3)", "", 6.5, ""},
		{"123456789012345678", "", 123456789012345678, ""},
	} {
		v, err := parseCell(c.text, baseUnit(c.unit))
		if err != nil || v.Kind != Number || v.Number != c.want || v.Unit != c.base {
			t.Errorf("%q %q = %+v, %v; want %v %s", c.text, c.unit, v, err, c.want, c.base)
		}
	}
}

func TestParseCellAbsent(t *testing.T) {
	for text, reason := range map[string]string{
		"": ReasonEmpty, "n/a": ReasonNotAvailable, "N/A": ReasonNotAvailable, "no data": ReasonNoData,
		"nan": ReasonNaN, "-nan": ReasonNaN, "-nan(ind)": ReasonNaN, "1.#QNAN": ReasonNaN,
		"inf": ReasonInfinite, "-inf": ReasonInfinite, "1e999": ReasonInfinite,
		"(!) nan": ReasonInvalid + ": nan", "(!) 12.50": ReasonInvalid + ": 12.50",
		"no data (1; 2)": ReasonNoData,
	} {
		v, err := parseCell(text, baseUnit("ns"))
		if err != nil || v.Kind != Missing || v.Reason != reason {
			t.Errorf("%q = %+v, %v; want missing: %s", text, v, err, reason)
		}
	}
}

func TestParseCellText(t *testing.T) {
	for _, text := range []string{"CachePreferNone", "No-CC", "all", "NVIDIA RTX 3050 (Laptop)", "3D", "10 GB", "-", "1.2 x"} {
		v, err := parseCell(text, baseUnit(""))
		if err != nil || v.Kind != Text || v.Text != text {
			t.Errorf("%q = %+v, %v; want the text", text, v, err)
		}
	}
}

func TestParseCellRefused(t *testing.T) {
	for text, want := range map[string]error{
		"117.344": errAmbiguous, "-1.234": errAmbiguous, "9.999": errAmbiguous, "117.344 (1; 2)": errAmbiguous,
		"1.2.3": errHalfKnown, "1,23,4": errHalfKnown, "1,,234": errHalfKnown, "1,234,56": errHalfKnown,
		"1.234,567.89": errHalfKnown, "1.": errHalfKnown, "5,": errHalfKnown, "1,234.5,6": errHalfKnown,
		"1e": errHalfKnown, "1e5e6": errHalfKnown, "0,123,456": errHalfKnown, "1.5e5,5": errHalfKnown, "1,234e5": errHalfKnown,
		"12 34": errHalfKnown, "1 2,3.4": errHalfKnown,
	} {
		for _, unit := range []string{"", "us", "Kbyte"} {
			if v, err := parseCell(text, baseUnit(unit)); !errors.Is(err, want) {
				t.Errorf("%q %q = %+v, %v; want %v", text, unit, v, err, want)
			}
		}
	}
}

// A number printed in any locale's notation is read back exactly, or refused as
// ambiguous; the fast and the slow way agree.
func TestNumberRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20000 {
		whole := rng.Uint64() >> rng.IntN(64) % 1e15
		decimals := rng.IntN(7)
		fraction := ""
		for range decimals {
			fraction += strconv.Itoa(rng.IntN(10))
		}
		plain := strconv.FormatUint(whole, 10)
		if decimals > 0 {
			plain += "." + fraction
		}
		want, err := strconv.ParseFloat(plain, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, style := range [][2]string{{"", "."}, {",", "."}, {".", ","}, {" ", ","}, {"'", "."}, {"\u202f", ","}} {
			text := group(strconv.FormatUint(whole, 10), style[0])
			if decimals > 0 {
				text += style[1] + fraction
			}
			v, err := parseCell(text, baseUnit(""))
			if ambiguousByHand(text) {
				continue
			}
			if err != nil || v.Kind != Number || v.Number != want {
				t.Fatalf("seed %d: %q = %+v, %v; want %v", seed, text, v, err, want)
			}
		}
	}
}

func group(s, sep string) string {
	if sep == "" {
		return s
	}
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), sep)
}

// ambiguousByHand says whether a text has exactly one separator, a point or a
// comma, before exactly three digits.
func ambiguousByHand(s string) bool {
	i := strings.IndexAny(s, ".,")
	return i > 0 && i <= 3 && len(s)-i == 4 && s[0] != '0' && strings.Count(s, ".")+strings.Count(s, ",") == 1 && !strings.ContainsAny(s, " '\u202f")
}

func TestFastNumberAgrees(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	alphabet := "0123456789,,..-e "
	hits := 0
	for range 500000 {
		b := make([]byte, 1+rng.IntN(9))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		exp := rng.IntN(25) - 12
		fast, ok := fastNumber(string(b), exp)
		if !ok {
			continue
		}
		hits++
		plain, err := plainNumber(string(b))
		if err != nil {
			t.Fatalf("seed %d: the fast way reads %q as %v, the slow way: %v", seed, b, fast, err)
		}
		slow, err := scaled(plain, exp)
		if err != nil || math.Float64bits(slow) != math.Float64bits(fast) {
			t.Fatalf("seed %d: %q e%d is %v the fast way, %v the slow way (%v)", seed, b, exp, fast, slow, err)
		}
	}
	if hits < 10000 {
		t.Fatalf("only %d of the texts were numbers", hits)
	}
}
