package doctor

import (
	"context"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// programs examines what gate calls and did not bring.
func (o Options) programs(ctx context.Context, r *Report) {
	for _, p := range []struct {
		Check
		program string
		args    []string
	}{
		{Check{Name: "git", Without: "no base is found: nothing can be compared", Fix: "apt-get install git"}, "git", []string{"--version"}},
		{Check{Name: "python3", Without: "gate toolchain install cannot fetch the compiler", Fix: "apt-get install python3 python3-pip"}, "python3", []string{"--version"}},
		{Check{Name: "pip", Without: "gate toolchain install cannot fetch the compiler, unless python3 has venv", Fix: "apt-get install python3-pip"}, "python3", []string{"-m", "pip", "--version"}},
	} {
		c := p.Check
		tool, err := toolchain.FindProgram(ctx, o.find(), p.program, p.args...)
		if err != nil {
			fail(&c, err, c.Fix)
			if p.Name == "pip" {
				c.Status = Missing
			}
		} else {
			c.Status, c.Detail = OK, tool.Version+": "+tool.Path
		}
		r.add(c)
	}
}
