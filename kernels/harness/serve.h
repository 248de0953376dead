// serve.h: the worker's side: it does what the runner asks, one request after the
// other, until the runner is gone.
#pragma once

int serve(int socket, int exchange);
