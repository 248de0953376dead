package nvccflags

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A table holds the options of one program. Programs that nvcc runs have their
// options passed on by one of nvcc's, such as -Xptxas.
type table struct {
	program  string
	passedBy string
	joined   string // refused options that may have their value in the same word: "-I -L"
	options  []option
}

// An option is accepted, with its value and what it may change, or refused.
type option struct {
	names   []string
	value   value
	glue    glue
	changes changes
	refused string // why
}

// glue says how a program takes the value of an option.
type glue uint8

const (
	equals glue = 1 << iota // --optimize=3
	joined                  // -O3
	apart                   // -O 3
)

// changes is what an option may change.
type changes uint8

const (
	device   changes = 1 << iota // code that runs on the GPU
	host                         // code that runs on the CPU
	inputs                       // which files are read: it sets a macro that #if can ask for
	messages                     // what the compiler prints, and whether a warning ends it
)

// A value is what an option takes; none where shown is empty.
type value struct {
	shown string
	ok    func(string) bool
	list  bool   // of such values, with commas between them
	phase *table // options of another program, with commas between them
}

// one is a value out of a closed list, words with spaces between them.
func one(of string) value {
	words := strings.Fields(of)
	return value{shown: strings.Join(words, "|"), ok: func(s string) bool { return slices.Contains(words, s) }}
}

func number(from, to int) value {
	return value{shown: "a number from " + strconv.Itoa(from) + " to " + strconv.Itoa(to), ok: func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && from <= n && n <= to && s == strconv.Itoa(n)
	}}
}

func pattern(shown, expr string) value {
	return value{shown: shown, ok: regexp.MustCompile("^(?:" + expr + ")$").MatchString}
}

func list(v value) value {
	v.list = true
	return v
}

func phase(t *table) value {
	return value{shown: "options of " + t.program, phase: t}
}

// Values that several options share.
var (
	none      value
	yesNo     = one("true false")
	fast      = one("0 min mid max")
	macro     = pattern("NAME or NAME=VALUE", "[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_+.:/=-]*)?")
	macroName = pattern("NAME", "[A-Za-z_][A-Za-z0-9_]*")
)

// row is an accepted option; its names stand with spaces between them.
func row(names string, v value, g glue, c changes) option {
	return option{names: strings.Fields(names), value: v, glue: g, changes: c}
}

// off are refused options, all for one reason.
func off(why string, names ...string) []option {
	var out []option
	for _, n := range names {
		out = append(out, option{names: strings.Fields(n), refused: why})
	}
	return out
}

func (c changes) String() string {
	var words []string
	for i, word := range []string{"device", "host", "inputs", "messages"} {
		if c&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
