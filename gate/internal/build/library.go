package build

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strconv"
	"strings"
)

// checkLibrary says why a library is none that the harness can load; "" for one
// that is.
func checkLibrary(path string) string {
	f, err := elf.Open(path)
	if err != nil || f.Type != elf.ET_DYN {
		return "makes no shared library"
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return "makes a library without symbols"
	}
	for _, s := range symbols {
		if s.Name == "gate_run" && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			return ""
		}
	}
	return `has no function gate_run that the harness could call; declare it extern "C", as gate.h does`
}

// checkObject says why a file cannot be linked as an object. Device code in one
// would be code of which no compiler's report is here.
func checkObject(data []byte) string {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil || f.Type != elf.ET_REL {
		return "is not an object file"
	}
	for _, s := range f.Sections {
		if s.Name == ".nv_fatbin" || s.Name == "__nv_relfatbin" || strings.HasPrefix(s.Name, ".gnu.lto_") {
			return fmt.Sprintf("holds code that is not compiled here (section %s): name its source under sources", s.Name)
		}
	}
	return ""
}

const archiveHeader = 60

// checkArchive says why a file is not an archive of such objects.
func checkArchive(data []byte) string {
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		return "is not a static library (.a); one that is loaded later would not be what was judged"
	}
	objects := 0
	for len(rest) > 0 {
		if len(rest) < archiveHeader {
			return "ends inside a member"
		}
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || size > len(rest)-archiveHeader {
			return "ends inside a member"
		}
		name, body := strings.TrimSpace(string(rest[:16])), rest[archiveHeader:archiveHeader+size]
		if name != "/" && name != "//" && name != "/SYM64/" {
			if why := checkObject(body); why != "" {
				return fmt.Sprintf("has a member %s that %s", strings.TrimSuffix(name, "/"), why)
			}
			objects++
		}
		rest = rest[min(len(rest), archiveHeader+size+size%2):]
	}
	if objects == 0 {
		return "holds no object"
	}
	return ""
}
