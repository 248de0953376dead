package compare

import "slices"

// Drop takes kernels out of the experiment: one whose launches fail cannot be
// compared, and must not hold up the others. What it measured so far is lost
// to Experiments; the number of tests, and with it the error rate of the
// others, shrinks for a reason that has nothing to do with their times. The
// attempts that the block took count no more: what failed is out.
func (d *Driver) Drop(names ...string) {
	gone := func(name string) bool { return slices.Contains(names, name) }
	before := len(d.experiments)
	d.experiments = slices.DeleteFunc(d.experiments, func(e Experiment) bool { return gone(e.Name) })
	d.open = slices.DeleteFunc(d.open, gone)
	if len(d.experiments) < before {
		d.attempt = 1
	}
}
