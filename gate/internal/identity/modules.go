package identity

import (
	"fmt"
	"strconv"
	"strings"
)

// Modules are the names that nvcc gave the translation units of one build, as
// it writes them into x.module_id, each with the unit's own name. nvcc makes
// names of internal linkage unique with them. They hold a hash of the path, and
// the number of a process where a unit defines nothing that others can see.
type Modules map[string]string

// AddModule takes over what x.module_id holds for a unit.
func (m Modules) AddModule(content, unit string) error {
	id := strings.TrimPrefix(strings.TrimSpace(content), "_")
	if len(id) < 10 || id[8] != '_' || strings.Trim(id[:8], "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not the name of a module", content)
	}
	m[id] = unit
	return nil
}

// normalise puts the unit's name where a symbol holds the module's: with the
// length that mangling writes before it, and bare. Nothing else of a name is
// touched, however much it looks like one.
func (m Modules) normalise(name string) string {
	for id, unit := range m {
		if !strings.Contains(name, id) {
			continue
		}
		unit = "<" + unit + ">"
		for _, prefix := range []string{"_GLOBAL__N__", "_INTERNAL_"} {
			name = strings.ReplaceAll(name, strconv.Itoa(len(prefix)+len(id))+prefix+id, prefix+unit)
		}
		name = strings.ReplaceAll(name, "__nv_static_"+strconv.Itoa(len(id)+1)+"__"+id, "__nv_static_"+unit)
		name = strings.ReplaceAll(name, id, unit)
	}
	return name
}
