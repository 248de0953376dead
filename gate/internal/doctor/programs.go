package doctor

import (
	"context"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// programs examines what gate calls and did not bring.
func (o Options) programs(ctx context.Context, r *Report) {
	for _, p := range []struct {
		check
		program string
		args    []string
	}{
		{check{Name: "git", Without: "no base is found: nothing can be compared", Fix: "apt-get install git"}, "git", []string{"--version"}},
		{check{Name: "python3", Without: "gate toolchain install cannot fetch the compiler", Fix: "apt-get install python3 python3-pip"}, "python3", []string{"--version"}},
		{check{Name: "pip", Without: "gate toolchain install cannot fetch the compiler, unless python3 has venv", Fix: "apt-get install python3-pip"}, "python3", []string{"-m", "pip", "--version"}},
	} {
		tool, err := toolchain.FindProgram(ctx, o.find(), p.program, p.args...)
		c := p.found(tool, err)
		if err != nil && p.Name == "pip" {
			c.Status = missing
		}
		r.add(c)
	}
}
