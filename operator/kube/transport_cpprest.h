// The transport on cpprestsdk 2.10.18. That library gets no fixes any more, so everything it does is fenced:
// the table of hazards C1-C23 is in the design notes of the Kubernetes client; the numbers in
// transport_cpprest.cpp refer to it.
#pragma once

#include <memory>

#include "operator/kube/credentials.h"
#include "operator/kube/transport.h"

namespace evenkeel::oper {

// First thing in main, before any other use (C11: the library would start 40 threads).
void init_transport_threads(int threads);

// `credentials` must outlive the transport.
std::unique_ptr<Transport> make_cpprest_transport(Credentials& credentials);

}  // namespace evenkeel::oper
