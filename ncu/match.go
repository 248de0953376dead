package ncu

// An Identity is what makes launches of two runs comparable: the name that
// survives a rebuild and the size. Variant tells apart different printed names
// with the same key.
type Identity struct {
	Key         string
	Block, Grid [3]int
	Variant     int
}

// A Group holds the launches of one identity in both runs, in order. The i-th
// of base and the i-th of head are occurrences of the same launch.
type Group struct {
	Identity Identity
	Base     []*Launch
	Head     []*Launch
}

// A Matching is the outcome of Match. A launch is in exactly one group, and in
// Added or Removed as well when the other run has no occurrence of it.
type Matching struct {
	Groups  []Group   // in the order of base, then those that only head has
	Added   []*Launch // of head, without an occurrence in base
	Removed []*Launch // of base, without an occurrence in head
}

// Match pairs the launches of two runs by name key, block, grid and occurrence.
// The position in the file does not matter, so a launch that head adds in front
// shifts nothing. Where different printed names share a key, equal names are
// paired first and the others in order of appearance.
func Match(base, head []*Launch) Matching {
	m := &matcher{at: make(map[Identity]int)}
	names := pairNames(base, head)
	for _, l := range base {
		g := m.group(l, names.base[sizedName(l)])
		g.Base = append(g.Base, l)
	}
	for _, l := range head {
		g := m.group(l, names.head[sizedName(l)])
		g.Head = append(g.Head, l)
	}
	out := Matching{Groups: m.groups}
	for _, g := range m.groups {
		if n := len(g.Head); len(g.Base) > n {
			out.Removed = append(out.Removed, g.Base[n:]...)
		}
		if n := len(g.Base); len(g.Head) > n {
			out.Added = append(out.Added, g.Head[n:]...)
		}
	}
	return out
}

type matcher struct {
	groups []Group
	at     map[Identity]int
}

func (m *matcher) group(l *Launch, variant int) *Group {
	id := identity(l)
	id.Variant = variant
	i, ok := m.at[id]
	if !ok {
		i = len(m.groups)
		m.at[id] = i
		m.groups = append(m.groups, Group{Identity: id})
	}
	return &m.groups[i]
}

func identity(l *Launch) Identity {
	return Identity{Key: l.Key, Block: l.Block, Grid: l.Grid}
}

// sized is a printed name with its size.
type sized struct {
	identity Identity
	kernel   string
}

func sizedName(l *Launch) sized { return sized{identity(l), l.Kernel} }

// namePairs numbers the printed names within each identity, so that names which
// belong together have one number.
type namePairs struct{ base, head map[sized]int }

func pairNames(base, head []*Launch) namePairs {
	p := namePairs{make(map[sized]int), make(map[sized]int)}
	inHead := make(map[sized]bool)
	for _, l := range head {
		inHead[sizedName(l)] = true
	}
	next := make(map[Identity]int)
	var baseOnly []sized
	for _, l := range base {
		n := sizedName(l)
		if _, done := p.base[n]; done {
			continue
		}
		p.base[n] = next[n.identity]
		if inHead[n] {
			p.head[n] = next[n.identity]
		} else {
			baseOnly = append(baseOnly, n)
		}
		next[n.identity]++
	}
	open := make(map[Identity][]int) // numbers of base names without a partner
	for _, n := range baseOnly {
		open[n.identity] = append(open[n.identity], p.base[n])
	}
	for _, l := range head {
		n := sizedName(l)
		if _, done := p.head[n]; done {
			continue
		}
		if free := open[n.identity]; len(free) > 0 {
			p.head[n], open[n.identity] = free[0], free[1:]
			continue
		}
		p.head[n] = next[n.identity]
		next[n.identity]++
	}
	return p
}
