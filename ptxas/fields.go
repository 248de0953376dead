package ptxas

import "bytes"

// maxDigits bounds figures so that no sum over a text overflows.
const maxDigits = 12

// cutInt reads a decimal number at the beginning of s.
func cutInt(s []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if i == maxDigits {
			return 0, s, false
		}
		n = n*10 + int64(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

// cutWord removes a prefix.
func cutWord(s []byte, word string) ([]byte, bool) {
	if len(s) < len(word) || string(s[:len(word)]) != word {
		return s, false
	}
	return s[len(word):], true
}

// A frame is the line of stack and spill figures.
type frame struct {
	stack         int64
	stores, loads Count
}

// parseFrame reads "16 bytes stack frame, 8 bytes spill stores, 8 bytes spill
// loads".
func parseFrame(s []byte) (f frame, ok bool) {
	if f.stack, s, ok = cutFigure(s, " bytes stack frame, "); !ok {
		return f, false
	}
	if f.stores, s, ok = cutSpill(s, " bytes spill stores, "); !ok {
		return f, false
	}
	f.loads, s, ok = cutSpill(s, " bytes spill loads")
	return f, ok && len(trimTail(s)) == 0
}

// cutSpill reads a figure that can be negative: where registers are spilled to
// shared memory, ptxas takes more off than it had counted. How much is spilled
// is not known then.
func cutSpill(s []byte, unit string) (Count, []byte, bool) {
	digits, negative := cutWord(s, "-")
	n, rest, ok := cutFigure(digits, unit)
	if !ok || (negative && n == 0) {
		return Count{}, s, false
	}
	if negative {
		return Count{}, rest, true
	}
	return known(n), rest, true
}

func cutFigure(s []byte, unit string) (int64, []byte, bool) {
	n, s, ok := cutInt(s)
	if !ok {
		return 0, s, false
	}
	s, ok = cutWord(s, unit)
	return n, s, ok
}

// maxUnknown bounds the fields of one line that are kept as text.
const maxUnknown = 32

// readUsage reads what follows "Used ", without the target. It returns what is
// wrong with it, or nothing.
func (e *Entry) readUsage(s []byte) string {
	registers, s, ok := cutFigure(s, " registers")
	if !ok {
		return "unreadable number of registers"
	}
	e.Registers = known(registers)
	for len(s) > 0 {
		if s, ok = cutWord(s, ", "); !ok {
			return "unreadable text behind a field"
		}
		if len(e.Unknown) == maxUnknown {
			return "too many unknown fields"
		}
		var field []byte
		field, s = cutField(s)
		if msg := e.add(field); msg != "" {
			return msg
		}
	}
	return ""
}

// cutField cuts before the next comma.
func cutField(s []byte) (field, rest []byte) {
	if i := bytes.Index(s, []byte(", ")); i >= 0 {
		return s[:i], s[i:]
	}
	return s, nil
}

// absentIsZero fills in the fields that ptxas leaves out when they are zero. It
// is not so for barriers (older compilers never print them), constant banks
// (some architectures never do) and the cumulative stack size; nor when the
// line has fields that this package does not know, which may be the absent ones
// by another name.
func (e *Entry) absentIsZero() {
	if len(e.Unknown) > 0 {
		return
	}
	for _, c := range []*Count{&e.SharedBytes, &e.LocalBytes, &e.Textures, &e.Surfaces, &e.Samplers} {
		if !c.Known {
			*c = known(0)
		}
	}
}

// add reads one field behind the registers; it returns a message when the
// field is there twice.
func (e *Entry) add(field []byte) string {
	body, used := cutWord(field, "used ")
	n, rest, ok := cutInt(body)
	if ok && len(rest) > 0 && rest[0] == '+' { // sm_1x: variables + reserved by the system
		var more int64
		if more, rest, ok = cutInt(rest[1:]); ok {
			n += more
		}
	}
	if !ok {
		return e.addUnknown(field)
	}
	target := e.field(string(rest), used)
	if target == nil {
		return e.addOther(field, rest, n, used)
	}
	if target.Known {
		return "a field is there twice"
	}
	*target = known(n)
	return ""
}

// field returns the Count for the words behind a number.
func (e *Entry) field(words string, used bool) *Count {
	if used {
		if words == " barriers" {
			return &e.Barriers
		}
		return nil
	}
	switch words {
	case " bytes cumulative stack size":
		return &e.CumulativeStackBytes
	case " bytes smem":
		return &e.SharedBytes
	case " bytes lmem":
		return &e.LocalBytes
	case " textures":
		return &e.Textures
	case " surfaces":
		return &e.Surfaces
	case " samplers":
		return &e.Samplers
	case " stack": // the linkers know the calls: their figure is the deepest chain
		if e.Source != SourcePtxas {
			return &e.CumulativeStackBytes
		}
	}
	return nil
}

// addOther reads "360 bytes cmem[0]" or keeps the field as text.
func (e *Entry) addOther(field, rest []byte, n int64, used bool) string {
	bank, ok := constantBank(rest)
	if !ok || used {
		return e.addUnknown(field)
	}
	if e.ConstantBytes(bank).Known {
		return "a constant bank is there twice"
	}
	e.Constant = append(e.Constant, ConstantBank{Bank: bank, Bytes: n})
	return ""
}

// addUnknown keeps a field as text when it can be one: the fields that are known
// are a few lower-case words, and what is not comes from another line.
func (e *Entry) addUnknown(field []byte) string {
	const most = 40                                       // bytes; the longest that is known has 30
	words, _, _ := bytes.Cut(field, []byte(" (target: ")) // which a last line can be cut in
	for _, c := range words {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && bytes.IndexByte([]byte(" _+-[]()"), c) < 0 || len(words) > most {
			return "text that is not a field"
		}
	}
	e.Unknown = append(e.Unknown, string(field))
	return ""
}

// constantBank reads " bytes cmem[14]".
func constantBank(s []byte) (int, bool) {
	s, ok := cutWord(s, " bytes cmem[")
	if !ok {
		return 0, false
	}
	bank, s, ok := cutInt(s)
	return int(bank), ok && bank < 1000 && string(s) == "]"
}

// isGmem reports whether s is the line that begins a unit: "64 bytes gmem" with
// optional constant banks and target behind. The figures are not of a kernel.
func isGmem(s []byte) (gmem, whole bool) {
	_, s, ok := cutFigure(s, " bytes gmem")
	if !ok {
		return false, false
	}
	s, _, ok = cutTarget(trimTail(s))
	for ok && len(s) > 0 {
		if s, ok = cutWord(s, ", "); !ok {
			break
		}
		var field, rest []byte
		field, s = cutField(s)
		if _, rest, ok = cutInt(field); ok {
			_, ok = constantBank(rest)
		}
	}
	return true, ok
}
