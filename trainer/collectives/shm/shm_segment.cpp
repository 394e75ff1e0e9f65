#include "trainer/collectives/shm/shm_segment.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::string_view kMagic = "EKSHM01\n";
constexpr std::string_view kMailboxPrefix = "evenkeel-ring-";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kDescriptors = 3;  // memory, filled, emptied
constexpr int kMostPost = 64;            // letters that take() opens; more were sent by somebody who means harm
#ifndef MFD_NOEXEC_SEAL
constexpr unsigned MFD_NOEXEC_SEAL = 8;
#endif

Error system_error(const char* what) {
  return {ErrorCode::kUnavailable, std::string(what) + ": " + std::strerror(errno)};
}

bool is_capacity(std::size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinSharedMemoryBytes && bytes <= kMaxSharedMemoryBytes;
}

// Where the system insists on memory that cannot be executed it refuses the call without that flag; older ones
// do not know it.
int make_memory() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create("evenkeel-ring", flags | MFD_NOEXEC_SEAL);
  return fd >= 0 || errno != EINVAL ? fd : ::memfd_create("evenkeel-ring", flags);
}

struct MailAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  explicit MailAddress(const std::string& name) {
    const std::string text = std::string(kMailboxPrefix) + name;
    address.sun_family = AF_UNIX;  // sun_path[0] stays 0: an abstract name, which no file system holds
    const std::size_t bytes = std::min(text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, text.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// One datagram with its descriptors, in either direction.
struct Letter {
  std::array<char, kSegmentNonceBytes> nonce{};
  iovec text{nonce.data(), nonce.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptors * sizeof(int))> control{};
  msghdr header{};
  Letter() {
    header.msg_iov = &text;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

// Owned at once, whatever they are: else a stranger's letters would use up our descriptors.
std::vector<base::Socket> descriptors_of(Letter& letter) {
  std::vector<base::Socket> owned;
  for (cmsghdr* part = CMSG_FIRSTHDR(&letter.header); part != nullptr; part = CMSG_NXTHDR(&letter.header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      owned.emplace_back(fd);
    }
  }
  return owned;
}

}  // namespace

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      capacity_(other.capacity_),
      descriptor_(std::move(other.descriptor_)),
      filled_(std::move(other.filled_)),
      emptied_(std::move(other.emptied_)) {}

ShmSegment& ShmSegment::operator=(ShmSegment&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  memory_ = std::exchange(other.memory_, nullptr);
  bytes_ = other.bytes_;
  capacity_ = other.capacity_;
  descriptor_ = std::move(other.descriptor_);
  filled_ = std::move(other.filled_);
  emptied_ = std::move(other.emptied_);
  return *this;
}

ShmSegment::~ShmSegment() {
  unmap();
}

void ShmSegment::unmap() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
  memory_ = nullptr;
}

// Populated at once: the first all-reduce must not pay for page faults.
Status ShmSegment::map(std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_.fd(), 0);
  if (memory == MAP_FAILED) return system_error("mmap");
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  capacity_ = bytes - kSegmentDataOffset;
  return {};
}

Result<ShmSegment> ShmSegment::make(std::size_t capacity, const std::string& nonce) {
  if (!is_capacity(capacity) || nonce.size() != kSegmentNonceBytes)
    return Error{ErrorCode::kInternal, "a segment of " + std::to_string(capacity) + " bytes"};
  ShmSegment segment;
  segment.descriptor_ = base::Socket(make_memory());
  if (!segment.descriptor_.open()) return system_error("memfd_create");
  const std::size_t bytes = kSegmentDataOffset + capacity;
  // Pages are taken now, so that a lack of memory is an error here and not the end of the process later.
  if (::ftruncate(segment.descriptor(), static_cast<off_t>(bytes)) != 0) return system_error("ftruncate");
  if (const int error = ::posix_fallocate(segment.descriptor(), 0, static_cast<off_t>(bytes)); error != 0)
    return Error{ErrorCode::kUnavailable, std::string("fallocate: ") + std::strerror(error)};
  if (::fcntl(segment.descriptor(), F_ADD_SEALS, kSeals) != 0) return system_error("sealing the segment");
  segment.filled_ = base::Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  segment.emptied_ = base::Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!segment.filled_.open() || !segment.emptied_.open()) return system_error("eventfd");
  EVENKEEL_TRY(segment.map(bytes));
  auto* ring = new (segment.memory_) SharedRing{};
  std::copy(kMagic.begin(), kMagic.end(), ring->magic.begin());
  std::copy(nonce.begin(), nonce.end(), ring->nonce.begin());
  ring->capacity = capacity;
  return segment;
}

Result<ShmSegment> ShmSegment::open(base::Socket memory, base::Socket filled, base::Socket emptied,
                                    const std::string& nonce) {
  const auto refused = [](const char* why) {
    return Error{ErrorCode::kPermissionDenied, std::string("the segment that arrived is not used: ") + why};
  };
  ShmSegment segment;
  segment.descriptor_ = std::move(memory);
  segment.filled_ = std::move(filled);
  segment.emptied_ = std::move(emptied);
  struct stat info {};
  if (::fstat(segment.descriptor(), &info) != 0 || !S_ISREG(info.st_mode)) return refused("it is no memory");
  if ((::fcntl(segment.descriptor(), F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) !=
      (F_SEAL_SHRINK | F_SEAL_GROW)) {
    return refused("its size is not sealed");
  }
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes <= kSegmentDataOffset || !is_capacity(bytes - kSegmentDataOffset)) return refused("wrong size");
  EVENKEEL_TRY(segment.map(bytes));
  const SharedRing& ring = segment.ring();
  if (std::string_view(ring.magic.data(), ring.magic.size()) != kMagic) return refused("wrong magic");
  if (ring.capacity != segment.capacity_) return refused("wrong capacity");
  if (!base::equal_secrets(std::string_view(ring.nonce.data(), ring.nonce.size()), nonce))
    return refused("wrong nonce");
  return segment;
}

void ring_bell(int bell) {
  const std::uint64_t one = 1;
  // A full counter rings already.
  [[maybe_unused]] const ssize_t written = ::write(bell, &one, sizeof one);
}

void silence_bell(int bell) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(bell, &count, sizeof count);
}

Result<ShmMailbox> ShmMailbox::open() {
  ShmMailbox mailbox;
  mailbox.name_ = base::to_hex(base::random_bytes(kMailboxNameBytes / 2));
  mailbox.socket_ = base::Socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!mailbox.socket_.open()) return system_error("unix socket");
  const MailAddress address(mailbox.name_);
  if (::bind(mailbox.socket_.fd(), address.get(), address.length) != 0) return system_error("unix socket, bind");
  return mailbox;
}

Result<ShmSegment> ShmMailbox::take(const std::string& nonce) {
  for (int letters = 0; letters < kMostPost; ++letters) {
    Letter letter;
    const ssize_t bytes = ::recvmsg(socket_.fd(), &letter.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) break;
    std::vector<base::Socket> owned = descriptors_of(letter);
    const bool ours = bytes == static_cast<ssize_t>(kSegmentNonceBytes) && owned.size() == kDescriptors &&
                      base::equal_secrets(std::string_view(letter.nonce.data(), letter.nonce.size()), nonce);
    if (ours) return ShmSegment::open(std::move(owned[0]), std::move(owned[1]), std::move(owned[2]), nonce);
  }
  return Error{ErrorCode::kUnavailable, "the segment that was announced has not arrived"};
}

Status post(const ShmSegment& segment, const std::string& nonce, const std::string& mailbox) {
  const base::Socket socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return system_error("unix socket");
  MailAddress address(mailbox);
  Letter letter;
  std::copy_n(nonce.begin(), std::min(nonce.size(), letter.nonce.size()), letter.nonce.begin());
  letter.header.msg_name = &address.address;
  letter.header.msg_namelen = address.length;
  cmsghdr* part = CMSG_FIRSTHDR(&letter.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(kDescriptors * sizeof(int));
  const std::array<int, kDescriptors> descriptors{segment.descriptor(), segment.filled(), segment.emptied()};
  std::memcpy(CMSG_DATA(part), descriptors.data(), sizeof descriptors);
  if (::sendmsg(socket.fd(), &letter.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return system_error("no shared memory with the neighbour");
  return {};
}

}  // namespace evenkeel::trainer
