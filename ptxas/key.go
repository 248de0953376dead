package ptxas

import (
	"strconv"
	"strings"
)

// Key normalises a symbol name so that it names the same code in two builds.
// It removes
//
//   - clone numbers at the end ("$83");
//   - the hashes in names of internal linkage: the anonymous namespace
//     (_GLOBAL__N__<hash>_<n>_<file>_<hash>), _INTERNAL_<hash>_<n>_<file>_<hash>
//     and __nv_static_<n>__<hash>_<n>_<file>_<...>; the name of the file stays, without
//     the process number that older compilers put before it;
//   - version and architecture list of the inline namespace of CUB and Thrust
//     (CUB_200802_SM_900, THRUST_200802_SM_900_NS; _V_300500_SM_900 from CCCL 3.5
//     on), which all become _V;
//   - device and inode number in clang's __omp_offloading_<dev>_<ino>_.
//
// Lengths of mangled identifiers are corrected, so that a Key can be demangled.
// Key(Key(s)) == Key(s). Two different symbols can have one Key; that is what
// [Entry.Occurrence] is for.
func Key(name string) string {
	if !changeable(name) {
		return name
	}
	return normalise(name)
}

func normalise(name string) string {
	// A step can uncover another ("…$1" behind an identifier that is dropped).
	// A name that was made to do so without end is its own key.
	key := name
	for range 8 {
		short := normaliseIdentifiers(normaliseOffload(normaliseStatic(trimClone(key))))
		if short == key {
			return key
		}
		key = short
	}
	return name
}

// changeable reports whether a name holds the beginning of anything that Key
// removes. Most names do not, and are passed over at little cost.
func changeable(s string) bool {
	for i := range len(s) {
		switch {
		case s[i] == '$':
			return true
		case s[i] == '_' && (beginsMark(s[i:]) || strings.HasSuffix(s[:i], "CUB") || strings.HasSuffix(s[:i], "THRUST")):
			return true
		}
	}
	return false
}

// beginsMark reports whether s, which begins with an underscore, goes on as one
// of the marks that begin with one.
func beginsMark(s string) bool {
	if len(s) < 3 {
		return false
	}
	switch s[1] {
	case '_':
		return s[2] == 'n' || s[2] == 'o' // __nv_static_, __omp_offloading_
	case 'G':
		return s[2] == 'L'
	case 'I':
		return s[2] == 'N'
	case 'V':
		return s[2] == '_'
	}
	return false
}

// trimClone removes "$<digits>" suffixes.
func trimClone(s string) string {
	for {
		i := strings.LastIndexByte(s, '$')
		if i <= 0 || i == len(s)-1 || !allDigits(s[i+1:]) {
			return s
		}
		s = s[:i]
	}
}

const staticPrefix = "__nv_static_"

// normaliseStatic rewrites __nv_static_<n>_<id>_<symbol>, where <id> has n
// bytes and is _<hash>_<n>_<file>_<...>.
func normaliseStatic(s string) string {
	rest, ok := strings.CutPrefix(s, staticPrefix)
	if !ok {
		return s
	}
	n, digits := leadingInt(rest)
	if digits == 0 || digits+1+n >= len(rest) || rest[digits] != '_' {
		return s
	}
	id, symbol := rest[digits+1:digits+1+n], rest[digits+1+n:]
	file, ok := unitFile(strings.TrimPrefix(id, "_"))
	if !ok {
		return s
	}
	return staticPrefix + file + symbol
}

// unitFile takes the "<n>_<file>" out of a unit id, which is
// <hash>_<n>_<file>_<trailer> or, before CUDA 9, <n>_<file>_<trailer>.
func unitFile(id string) (string, bool) {
	if i := strings.IndexByte(id, '_'); i == 8 && isHex(id[:i]) {
		if f, ok := sizedFile(id[i+1:]); ok {
			return f, true
		}
	}
	return sizedFile(id)
}

func sizedFile(s string) (string, bool) {
	n, digits := leadingInt(s)
	end := digits + 1 + n
	if digits == 0 || n == 0 || end >= len(s) || s[digits] != '_' || s[end] != '_' {
		return "", false
	}
	file := trimTemporary(s[digits+1 : end])
	return strconv.Itoa(len(file)) + "_" + file, true
}

// trimTemporary removes "tmpxft_<process>_<number>_<n>_", which nvcc before
// CUDA 11 put before the names of its intermediate files.
func trimTemporary(file string) string {
	const prefix = "tmpxft_"
	const hex = 8
	for {
		rest, ok := strings.CutPrefix(file, prefix)
		if !ok || len(rest) < 2*hex+2 || !isHex(rest[:hex]) || rest[hex] != '_' || !isHex(rest[hex+1:2*hex+1]) || rest[2*hex+1] != '_' {
			return file
		}
		number, name, ok := strings.Cut(rest[2*hex+2:], "_")
		if !ok || !allDigits(number) || name == "" {
			return file
		}
		file = name
	}
}

const offloadPrefix = "__omp_offloading_"

// normaliseOffload removes the two hexadecimal numbers behind the prefix.
func normaliseOffload(s string) string {
	i := strings.Index(s, offloadPrefix)
	if i < 0 {
		return s
	}
	parts := strings.SplitN(s[i+len(offloadPrefix):], "_", 3)
	if len(parts) < 3 || !isHex(parts[0]) || !isHex(parts[1]) {
		return s
	}
	return s[:i] + offloadPrefix + "_" + parts[2] // the empty number keeps Key idempotent
}

// markers begin the identifiers that normaliseIdentifiers rewrites.
var markers = []string{"_GLOBAL__N__", "_INTERNAL_", "CUB_", "THRUST_", "_V_"}

// normaliseIdentifiers rewrites length-prefixed identifiers of a mangled name.
func normaliseIdentifiers(s string) string {
	if !strings.Contains(s, "_Z") {
		return s
	}
	for _, m := range markers {
		if strings.Contains(s, m) {
			return rewriteIdentifiers(s)
		}
	}
	return s
}

func rewriteIdentifiers(s string) string {
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		start, id, ok := identifierAt(s, i)
		if !ok {
			i++
			continue
		}
		if short := shortIdentifier(id); short != id {
			b.WriteString(s[copied:i])
			b.WriteString(strconv.Itoa(len(short)))
			b.WriteString(short)
			copied = start + len(id)
		}
		i = start + len(id)
	}
	b.WriteString(s[copied:])
	return b.String()
}

// identifierAt reads "<n><n bytes>" at i when one of the markers begins it.
func identifierAt(s string, i int) (start int, id string, ok bool) {
	if s[i] < '1' || s[i] > '9' {
		return 0, "", false
	}
	n, digits := leadingInt(s[i:])
	start = i + digits
	if n > len(s)-start {
		return 0, "", false
	}
	id = s[start : start+n]
	for _, m := range markers {
		if strings.HasPrefix(id, m) {
			return start, id, true
		}
	}
	return 0, "", false
}

// shortIdentifier drops the part of an identifier that changes from build to
// build.
func shortIdentifier(id string) string {
	for _, m := range []string{"_GLOBAL__N__", "_INTERNAL_"} {
		if rest, ok := strings.CutPrefix(id, m); ok {
			if file, ok := unitFile(rest); ok {
				return m + file
			}
			return id
		}
	}
	for _, m := range []string{"CUB_", "THRUST_", "_V_"} {
		rest, ok := strings.CutPrefix(id, m)
		if !ok {
			continue
		}
		version, archs, ok := strings.Cut(rest, "_SM")
		if ok && allDigits(version) && archList(archs) {
			return "_V"
		}
	}
	return id
}

// archList reports whether s is "_900", "_750_800_900", each with an optional
// "_NS" or "_NVHPC" behind.
func archList(s string) bool {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "_NS"), "_NVHPC")
	if s == "" || s[0] != '_' {
		return false
	}
	for _, a := range strings.Split(s[1:], "_") {
		if !allDigits(a) {
			return false
		}
	}
	return true
}

// leadingInt reads up to six decimal digits; more is not the length of a name.
func leadingInt(s string) (n, digits int) {
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		if digits == 6 {
			return 0, 0
		}
		n = n*10 + int(s[digits]-'0')
		digits++
	}
	return n, digits
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}
