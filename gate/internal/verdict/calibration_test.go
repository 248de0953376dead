package verdict

import "testing"

func TestNothingCalibratedIsNotGateable(t *testing.T) {
	if (&Calibration{}).Gateable() || (&Calibration{Kernels: []Calibrated{{Gateable: true}, {}}}).Gateable() || !(&Calibration{Kernels: []Calibrated{{Gateable: true}}}).Gateable() {
		t.Error("gateable is not every kernel, and at least one")
	}
}
