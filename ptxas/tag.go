package ptxas

import "bytes"

// A tag is the "ptxas info    :" that begins a record.
type tag struct {
	source   Source
	severity Severity // empty for the continuation tag "ptxas         ."
	place    string   // "k.ptx, line 894" of "ptxas k.ptx, line 894; error   :"
}

var (
	wordPtxas  = []byte("ptxas")
	wordNvlink = []byte("nvlink")
	wordInfo   = []byte("info")
	commonTag  = []byte("ptxas info    : ") // nine lines in ten of a log begin so
)

// findTag returns the first tag of a line and what follows it. A tag can stand
// behind time stamps, job numbers and other prefixes. The bare "info    :" of
// the driver's linker is too weak a mark for that and is not found here.
func findTag(line []byte) (tag, []byte, bool) {
	if bytes.HasPrefix(line, commonTag) {
		return tag{source: SourcePtxas, severity: SeverityInfo}, trimLeft(line[len(commonTag):]), true
	}
	p, n := bytes.Index(line, wordPtxas), bytes.Index(line, wordNvlink)
	for p >= 0 || n >= 0 {
		source, at, size := SourcePtxas, p, len(wordPtxas)
		if p < 0 || (n >= 0 && n < p) {
			source, at, size = SourceNvlink, n, len(wordNvlink)
		}
		if severity, body, ok := severityAt(line[at+size:]); ok {
			return tag{source: source, severity: severity}, body, true
		}
		if t, body, ok := placedTag(source, line[at+size:]); ok {
			return t, body, true
		}
		if source == SourcePtxas {
			p = indexFrom(line, wordPtxas, at+size)
		} else {
			n = indexFrom(line, wordNvlink, at+size)
		}
	}
	return tag{}, nil, false
}

func indexFrom(line, word []byte, from int) int {
	if i := bytes.Index(line[from:], word); i >= 0 {
		return from + i
	}
	return -1
}

var (
	wordLine  = []byte(", line ")
	wordPlace = []byte("; ")
)

// placedTag reads " k.ptx, line 894; warning : ", with which ptxas begins a
// message about one line of its input. The name of the input can hold blanks.
func placedTag(source Source, s []byte) (tag, []byte, bool) {
	place := trimLeft(s)
	i := bytes.Index(place, wordLine)
	if i <= 0 || len(place) == len(s) || bytes.Contains(place[:i], []byte(source)) {
		return tag{}, nil, false
	}
	_, rest, ok := cutInt(place[i+len(wordLine):])
	if !ok || !bytes.HasPrefix(rest, wordPlace) {
		return tag{}, nil, false
	}
	severity, body, ok := severityAt(rest[1:])
	return tag{source, severity, shorten(string(place[:len(place)-len(rest)]))}, body, ok && severity != ""
}

// severityAt reads " info    : " behind the name of a tool.
func severityAt(s []byte) (Severity, []byte, bool) {
	t := trimLeft(s)
	if len(t) == len(s) || len(t) == 0 {
		return "", nil, false
	}
	if t[0] == '.' {
		return "", t[1:], true
	}
	var severity Severity
	switch t[0] {
	case 'i':
		severity = SeverityInfo
	case 'w':
		severity = SeverityWarning
	case 'e':
		severity = SeverityError
	case 'f':
		severity = SeverityFatal
	}
	if severity == "" || len(t) < len(severity) || string(t[:len(severity)]) != string(severity) {
		return "", nil, false
	}
	body, ok := afterColon(t[len(severity):])
	return severity, body, ok
}

// afterColon reads "   : " and returns what follows.
func afterColon(s []byte) ([]byte, bool) {
	s = trimLeft(s)
	if len(s) == 0 || s[0] != ':' {
		return nil, false
	}
	return trimLeft(s[1:]), true
}

// bareInfo reads the tag of the driver's linker, "info    : ", which stands at
// the beginning of a line or behind a blank.
func bareInfo(line []byte) ([]byte, bool) {
	for from := 0; ; {
		i := indexFrom(line, wordInfo, from)
		if i < 0 {
			return nil, false
		}
		from = i + len(wordInfo)
		if i > 0 && line[i-1] != ' ' && line[i-1] != '\t' {
			continue
		}
		if body, ok := afterColon(line[from:]); ok {
			return body, true
		}
	}
}

func trimLeft(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// trimTail removes what build systems put behind a record: blanks, a carriage
// return and MSBuild's " [project.vcxproj]".
func trimTail(s []byte) []byte {
	s = trimRight(s)
	if len(s) > 0 && s[len(s)-1] == ']' {
		i := bytes.LastIndex(s, []byte(" ["))
		if i >= 0 && bytes.IndexByte(s[i:len(s)-1], ']') < 0 {
			return trimRight(s[:i])
		}
	}
	return s
}

func trimRight(s []byte) []byte {
	for len(s) > 0 {
		switch s[len(s)-1] {
		case ' ', '\t', '\r', '\n':
			s = s[:len(s)-1]
		default:
			return s
		}
	}
	return s
}

// cutTarget takes " (target: sm_90)" off the end of nvlink's records.
func cutTarget(s []byte) (rest []byte, arch []byte, ok bool) {
	if len(s) == 0 || s[len(s)-1] != ')' {
		return s, nil, true
	}
	mark := []byte("(target: ")
	i := bytes.LastIndex(s, mark)
	if i < 0 {
		return s, nil, true
	}
	arch = s[i+len(mark) : len(s)-1]
	return trimRight(s[:i]), arch, isArch(arch)
}

// isArch reports whether s is "sm_" and digits with an optional "a" or "f".
func isArch(s []byte) bool {
	if len(s) < 5 || len(s) > 12 || string(s[:3]) != "sm_" {
		return false
	}
	d := s[3:]
	if c := d[len(d)-1]; c == 'a' || c == 'f' {
		d = d[:len(d)-1]
	}
	for _, c := range d {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(d) > 0
}
