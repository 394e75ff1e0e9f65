#include "trainer/collectives/tcp/tcp_link.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// The kernel writes to none of it when it sends; its type does not say so.
msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

Result<std::size_t> nothing_or_gone() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::size_t{0};
  return Error{ErrorCode::kUnavailable, std::strerror(errno)};
}

}  // namespace

Result<std::size_t> TcpWriter::write(std::span<const iovec> pieces) {
  const msghdr message = message_of(pieces);
  const ssize_t bytes = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes < 0) return nothing_or_gone();
  moved_ += static_cast<std::uint64_t>(bytes);
  return static_cast<std::size_t>(bytes);
}

Result<std::size_t> TcpReader::read(std::span<const iovec> pieces) {
  msghdr message = message_of(pieces);
  const ssize_t bytes = ::recvmsg(socket_, &message, MSG_DONTWAIT);
  if (bytes < 0) return nothing_or_gone();
  if (bytes == 0) return Error{ErrorCode::kUnavailable, "closed by the other side"};
  moved_ += static_cast<std::uint64_t>(bytes);
  return static_cast<std::size_t>(bytes);
}

}  // namespace evenkeel::trainer
