// Owners of what OpenSSL hands out by bare pointer. Used where TLS is set up by hand.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace evenkeel::oper {

template <class T, void (*free_function)(T*)>
struct OpenSslFree {
  void operator()(T* pointer) const { free_function(pointer); }
};
using Certificate = std::unique_ptr<X509, OpenSslFree<X509, X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY, EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, OpenSslFree<BIO, BIO_free_all>>;

}  // namespace evenkeel::oper
