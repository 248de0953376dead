// clock.h: the host's clock, beside that of the device.
#pragma once

// host_ns counts from some moment on and never goes back.
double host_ns();
