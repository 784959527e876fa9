#include "hub/file_digest.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace hadal {

const char* HashKindName(HashKind kind) {
  return kind == HashKind::kSha256 ? "sha-256" : "git hash";
}

struct FileDigest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

FileDigest::FileDigest(HashKind kind, int64_t size) : state_(std::make_unique<State>()) {
  HADAL_CHECK(state_->context != nullptr);
  const EVP_MD* algorithm = kind == HashKind::kSha256 ? EVP_sha256() : EVP_sha1();
  HADAL_CHECK(EVP_DigestInit_ex(state_->context, algorithm, nullptr) == 1);
  if (kind == HashKind::kGitSha1) {
    const std::string head = fmt::format("blob {}", size);
    Add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // the zero byte is part of it
  }
}

FileDigest::~FileDigest() { EVP_MD_CTX_free(state_->context); }

void FileDigest::Add(std::span<const std::byte> bytes) {
  HADAL_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string FileDigest::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HADAL_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

Result<std::string> HashOfFile(const std::string& path, HashKind kind) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  FileDigest digest(kind, size);
  while (!error && !file.eof()) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (file.bad() || (file.fail() && !file.eof())) break;
    digest.Add(std::as_bytes(std::span(buffer).first(static_cast<size_t>(file.gcount()))));
  }
  if (!error && file.eof()) return digest.Finish();
  return Status::Io(fmt::format("{}: expected to read it, the system refused", path));
}

}  // namespace hadal
