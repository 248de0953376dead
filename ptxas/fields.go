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
type frame struct{ stack, stores, loads int64 }

// parseFrame reads "16 bytes stack frame, 8 bytes spill stores, 8 bytes spill
// loads".
func parseFrame(s []byte) (f frame, ok bool) {
	if f.stack, s, ok = cutFigure(s, " bytes stack frame, "); !ok {
		return f, false
	}
	if f.stores, s, ok = cutFigure(s, " bytes spill stores, "); !ok {
		return f, false
	}
	f.loads, s, ok = cutFigure(s, " bytes spill loads")
	return f, ok && len(trimTail(s)) == 0
}

func cutFigure(s []byte, unit string) (int64, []byte, bool) {
	n, s, ok := cutInt(s)
	if !ok {
		return 0, s, false
	}
	s, ok = cutWord(s, unit)
	return n, s, ok
}

// A usage is the "Used" line.
type usage struct {
	registers, barriers, cumulative, shared, local, stack Count
	textures, surfaces, samplers                          Count
	constant                                              []ConstantBank
	unknown                                               []string
	arch                                                  []byte
}

// maxUnknown bounds the fields of one line that are kept as text.
const maxUnknown = 32

// parseUsage reads what follows "Used ".
func parseUsage(s []byte) (u usage, msg string) {
	s, arch, ok := cutTarget(trimTail(s))
	if !ok {
		return u, "unreadable target"
	}
	u.arch = arch
	registers, s, ok := cutFigure(s, " registers")
	if !ok {
		return u, "unreadable number of registers"
	}
	u.registers = known(registers)
	for len(s) > 0 {
		if s, ok = cutWord(s, ", "); !ok {
			return u, "unreadable text behind a field"
		}
		if len(u.unknown) == maxUnknown {
			return u, "too many unknown fields"
		}
		field := s
		if i := bytes.Index(s, []byte(", ")); i >= 0 {
			field, s = s[:i], s[i:]
		} else {
			s = nil
		}
		if msg := u.add(field); msg != "" {
			return u, msg
		}
	}
	return u, ""
}

// absentIsZero fills in the fields that ptxas leaves out when they are zero. It
// is not so for barriers (older compilers never print them), constant banks
// (some architectures never do) and the cumulative stack size; nor when the
// line has fields that this package does not know, which may be the absent ones
// by another name.
func (u *usage) absentIsZero() {
	if len(u.unknown) > 0 {
		return
	}
	for _, c := range []*Count{&u.shared, &u.local, &u.textures, &u.surfaces, &u.samplers} {
		if !c.Known {
			*c = known(0)
		}
	}
}

// add reads one field behind the registers; it returns a message when the
// field is there twice.
func (u *usage) add(field []byte) string {
	body, used := cutWord(field, "used ")
	n, rest, ok := cutInt(body)
	if ok && len(rest) > 0 && rest[0] == '+' { // sm_1x: variables + reserved by the system
		var more int64
		if more, rest, ok = cutInt(rest[1:]); ok {
			n += more
		}
	}
	if !ok {
		u.unknown = append(u.unknown, string(field))
		return ""
	}
	target := u.field(string(rest), used)
	if target == nil {
		return u.addOther(field, rest, n, used)
	}
	if target.Known {
		return "a field is there twice"
	}
	*target = known(n)
	return ""
}

// field returns the Count for the words behind a number.
func (u *usage) field(words string, used bool) *Count {
	if used {
		if words == " barriers" {
			return &u.barriers
		}
		return nil
	}
	switch words {
	case " bytes cumulative stack size":
		return &u.cumulative
	case " bytes smem":
		return &u.shared
	case " bytes lmem":
		return &u.local
	case " textures":
		return &u.textures
	case " surfaces":
		return &u.surfaces
	case " samplers":
		return &u.samplers
	case " stack":
		return &u.stack
	}
	return nil
}

// addOther reads "360 bytes cmem[0]" or keeps the field as text.
func (u *usage) addOther(field, rest []byte, n int64, used bool) string {
	bank, ok := constantBank(rest)
	if !ok || used {
		u.unknown = append(u.unknown, string(field))
		return ""
	}
	if bankBytes(u.constant, bank).Known {
		return "a constant bank is there twice"
	}
	u.constant = append(u.constant, ConstantBank{Bank: bank, Bytes: n})
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
		field := s
		if i := bytes.Index(s, []byte(", ")); i >= 0 {
			field, s = s[:i], s[i:]
		} else {
			s = nil
		}
		var rest []byte
		if _, rest, ok = cutInt(field); ok {
			_, ok = constantBank(rest)
		}
	}
	return true, ok
}
