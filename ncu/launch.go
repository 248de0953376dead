package ncu

// A Report is everything read from one file.
type Report struct {
	Launches []*Launch // in the order of the file
	Messages []Message // what ncu said around the table; at most 1,000 are kept
	Session  Session   // only a .ncu-rep fills it
}

// A Message is one ==PROF== or ==WARNING== line of ncu. Process ids and paths
// of connection messages are removed: they say nothing about the kernel.
type Message struct {
	Line     int
	Severity string // PROF, WARNING
	Text     string
}

// A Launch is one profiled kernel launch with its metrics. Its methods parse
// cells when they are asked for and change nothing, so several goroutines can
// use a Launch at once.
type Launch struct {
	ID       int    // restarts in every report
	Process  int    // process id as printed
	Kernel   string // as printed
	Mangled  string // only a .ncu-rep has it
	Key      string // NameKey(Kernel): the name that survives a rebuild
	Device   int
	CC       string // compute capability, such as "9.0"; "" when the file does not say
	Context  int
	Stream   int
	Block    [3]int    // threads per block; zero in files of 2022 and before
	Grid     [3]int    // blocks; zero in files of 2022 and before
	Sections []Section // only a .ncu-rep has the definitions
	Rules    []Rule    // what ncu's own rules found; only details pages and .ncu-rep
	Line     int       // line of the first row; 0 for a .ncu-rep

	file   string
	values values
}

// values is where the metrics of a launch lie: a row of a raw page, the rows of
// a details page, or the decoded entries of a .ncu-rep.
type values interface {
	metric(name string) (cell, bool)
	label(section, label string) (cell, bool)
	names() []string
	labels() []labelled
	each(do func(name string, c cell) error) error
}

// A labelled cell is a row of which the value is not parsed yet.
type labelled struct {
	row  Row
	cell cell
}

// A cell is a value that is not parsed yet, or one that needs no parsing.
type cell struct {
	text   string
	unit   unit
	line   int
	parsed *Value // of a .ncu-rep
	wire   []byte // the metric as stored, when it has instances
}

// An Instance is one element of a metric that has several, such as the samples
// of one program counter or the value of one unit.
type Instance struct {
	Key    string // "" when the file gives none
	Number float64
	Text   string // for instances that are words
}

// A Row is a metric as a details page shows it.
type Row struct {
	Section string // "Occupancy"
	Body    string // the table or chart of the section, with --print-details; else ""
	Label   string // "Achieved Occupancy"
	Counter string // that the label stands for in all releases, or ""
	Value   Value
}

// A Rule is one result of ncu's rule engine for a launch.
type Rule struct {
	Section     string // section identifier, such as SpeedOfLight
	Name        string
	Type        string // OPT, INF, WRN, ERR; "" for one that is not known
	Text        string
	SpeedupType string // global, local or ""
	Speedup     Value  // estimated, in %
}

// Session holds what a .ncu-rep says about the run. Host names, user names,
// paths, network addresses, the command line and embedded code are never kept.
type Session struct {
	Version       string // of Nsight Compute, such as 2025.1.0.0
	CUDAVersion   string
	DriverVersion string
	Devices       []Device
}

// A Device is one GPU of the run.
type Device struct {
	Index      int
	Name       string
	Attributes []Attribute // sorted by name
}

// An Attribute is one property of a device.
type Attribute struct {
	Name  string // such as device__attribute_multiprocessor_count
	Value Value
}

// Metric returns the value of a counter by its name, such as
// gpu__time_duration.sum. A counter that the file does not hold is Missing.
// The error is a *SyntaxError for a cell that cannot be read with certainty.
func (l *Launch) Metric(name string) (Value, error) {
	c, ok := l.values.metric(name)
	return l.parse(name, c, ok)
}

// Label returns a value of a details page by what is printed there: the
// section's name and the metric's label, such as "Occupancy" and "Achieved
// Occupancy". Raw pages have no labels. What tables and charts of a section show
// is in Rows only, since they repeat labels.
func (l *Launch) Label(section, label string) (Value, error) {
	c, ok := l.values.label(section, label)
	return l.parse(label, c, ok)
}

// Rows lists what a details page shows of the launch, in the order of the page,
// and for a .ncu-rep the metrics that its sections show first. Raw pages have no
// rows. The error is that of Metric.
func (l *Launch) Rows() ([]Row, error) {
	var out []Row
	for _, r := range l.values.labels() {
		v, err := l.parse(r.row.Label, r.cell, true)
		if err != nil {
			return nil, err
		}
		r.row.Value = v
		out = append(out, r.row)
	}
	return out, nil
}

// Names returns the names of the counters in the launch, sorted. A row of a
// details page is there when its label stands for one counter in all releases.
func (l *Launch) Names() []string { return l.values.names() }

// Instances returns the single values of a metric with several, in the order
// of the file, or none. ncu prints them only when asked to with
// --print-metric-instances; a .ncu-rep always has them.
func (l *Launch) Instances(name string) ([]Instance, error) {
	c, ok := l.values.metric(name)
	if !ok {
		return nil, nil
	}
	var out []Instance
	var err error
	if c.parsed != nil {
		out, err = wireInstances(c.wire)
	} else {
		_, list := splitInstances(c.text)
		out, err = parseInstances(list, c.unit)
	}
	if err != nil {
		return nil, l.refuse(name, c, err)
	}
	return out, nil
}

func (l *Launch) parse(name string, c cell, ok bool) (Value, error) {
	if !ok {
		return missing(ReasonNotCollected), nil
	}
	if c.parsed != nil {
		return *c.parsed, nil
	}
	v, err := parseCell(c.text, c.unit)
	if err != nil {
		return Value{}, l.refuse(name, c, err)
	}
	return v, nil
}
