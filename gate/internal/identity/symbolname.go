package identity

import (
	"strconv"
	"strings"
)

// nvcc makes the names of an anonymous namespace and of internal symbols unique with a module name:
// <8 hex digits>_<n>_<file name, n characters>_<an external symbol, or more hex digits>. The digits are a hash of
// path and content, so every part of it is removed.
const (
	anonymousPrefix = "_GLOBAL__N__"
	internalPrefix  = "_INTERNAL_"
	staticPrefix    = "__nv_static_"
	clonePrefix     = "$__internal_"
)

// stripModule removes module names from a symbol or an identifier.
func stripModule(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	name = stripStatic(name)
	name = stripClone(name)
	name = stripPrefixed(name, anonymousPrefix)
	return stripPrefixed(name, internalPrefix)
}

// stripPrefixed removes what follows prefix in a module name. In a mangled symbol the length before the prefix says
// where the module name ends; elsewhere it fills the identifier.
func stripPrefixed(name, prefix string) string {
	var out strings.Builder
	rest := name
	for {
		at := strings.Index(rest, prefix)
		if at < 0 {
			break
		}
		end := len(rest)
		body := rest[at+len(prefix):]
		least := len(prefix) + moduleLength(body)
		if least == len(prefix) {
			out.WriteString(rest[:at+len(prefix)])
			rest = body
			continue
		}
		digits := at
		for digits > 0 && isDigit(rest[digits-1]) {
			digits--
		}
		keep := at
		if n, width := lengthBefore(rest[digits:at], least, len(rest)-at); width > 0 {
			end, keep = at+n, at-width
		}
		out.WriteString(rest[:keep])
		out.WriteString(prefix)
		rest = rest[end:]
	}
	if out.Len() == 0 {
		return name
	}
	out.WriteString(rest)
	return out.String()
}

// moduleLength returns the length of "<8 hex>_<n>_<n characters>" at the start of s, 0 when s does not look so.
func moduleLength(s string) int {
	if len(s) < 11 || s[8] != '_' {
		return 0
	}
	for i := range 8 {
		if !isHex(s[i]) {
			return 0
		}
	}
	i := 9
	for i < len(s) && i < 15 && isDigit(s[i]) {
		i++
	}
	n, err := strconv.Atoi(s[9:i])
	if err != nil || i >= len(s) || s[i] != '_' || n > len(s)-i-1 {
		return 0
	}
	return i + 1 + n
}

// lengthBefore finds the length that ends a run of digits: an identifier before it may end in digits of its own. The
// shortest that can hold the module name is taken, which can leave too much of a name but never removes too much.
func lengthBefore(digits string, least, most int) (n, width int) {
	for width = 1; width <= len(digits) && width <= 9; width++ {
		n, _ = strconv.Atoi(digits[len(digits)-width:])
		if n > most {
			break
		}
		if n >= least && digits[len(digits)-width] != '0' {
			return n, width
		}
	}
	return 0, 0
}

// stripStatic turns __nv_static_<n>_<module name, n characters>_<name> into __nv_static_<name>.
func stripStatic(name string) string {
	at := strings.Index(name, staticPrefix)
	if at < 0 {
		return name
	}
	rest := name[at+len(staticPrefix):]
	i := 0
	for i < len(rest) && i < 9 && isDigit(rest[i]) {
		i++
	}
	n, err := strconv.Atoi(rest[:i])
	if err != nil || i+2+n > len(rest) || rest[i] != '_' || rest[i+1+n] != '_' || moduleLength(strings.TrimLeft(rest[i+1:i+1+n], "_")) == 0 {
		return name
	}
	return name[:at+len(staticPrefix)] + rest[i+2+n:]
}

// stripClone removes the number from $__internal_<n>_$name, which counts over the whole module.
func stripClone(name string) string {
	at := strings.Index(name, clonePrefix)
	if at < 0 {
		return name
	}
	i := at + len(clonePrefix)
	end := i
	for end < len(name) && isDigit(name[end]) {
		end++
	}
	return name[:i] + name[end:]
}

// An entryNames knows how entries appear inside the names of their local variables.
type entryNames struct {
	encodings map[string]bool
}

func newEntryNames(names []string) entryNames {
	e := entryNames{encodings: make(map[string]bool, len(names))}
	for _, n := range names {
		n = strings.TrimPrefix(stripModule(n), staticPrefix)
		if rest, ok := strings.CutPrefix(n, "_Z"); ok {
			e.encodings[rest] = true
		} else {
			e.encodings[strconv.Itoa(len(n))+n] = true
		}
	}
	return e
}

const maxLocalNameTries = 64

// normalise removes module names, and an entry's own name from its local variables: _ZZ<entry>E<name> in the Itanium
// mangling.
func (e entryNames) normalise(name string) string {
	name = stripModule(name)
	local, ok := strings.CutPrefix(strings.TrimPrefix(name, staticPrefix), "_ZZ")
	if !ok {
		return name
	}
	at := 0
	for range maxLocalNameTries {
		next := strings.IndexByte(local[at:], 'E')
		if next < 0 {
			break
		}
		if at += next; e.encodings[local[:at]] {
			return "_ZZ<entry>" + local[at:]
		}
		at++
	}
	return name
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
