// Writes the weights of a model folder so that work that ended at any moment goes on where it was.
// While it is under way each file has the suffix ".partial" and its full size, and a journal says
// which tensors are complete and what their checksums are. A finished folder has checksum_file.h's
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_writer.h"

namespace hadal {

class ResumableWriter {
 public:
  // Opens what an earlier run left in `folder`, or begins. `fingerprint` stands for everything that
  // the content depends on: kInvalidArgument when the earlier run had another. Tensors whose bytes
  // no longer have their checksum count as not written. kIo; kInvalidArgument also when another
  // process is at work in the folder.
  static Result<ResumableWriter> Open(const std::string& folder, std::vector<SafetensorsSpec> specs,
                                      const std::string& fingerprint, int64_t shard_bytes);

  ResumableWriter(ResumableWriter&& other) noexcept;
  ResumableWriter& operator=(ResumableWriter&& other) noexcept;
  ResumableWriter(const ResumableWriter&) = delete;
  ResumableWriter& operator=(const ResumableWriter&) = delete;
  ~ResumableWriter();

  int num_shards() const;
  int64_t total_bytes() const;
  int64_t num_bytes(int spec_idx) const;
  bool is_done(int spec_idx) const;
  int num_done() const;

  // Writes a tensor as a whole and notes it in the journal. REQUIRES: all of its bytes.
  Status Put(int spec_idx, std::span<const std::byte> bytes);

  // The bytes of a tensor that is done, mapped from its file.
  std::span<const std::byte> bytes(int spec_idx) const;

  // Reads everything back and compares the checksums, writes them and the index, gives the files
  // their names and removes the journal. kCorrupt names the tensor that is not what was written;
  // kInvalidArgument when one is missing.
  Status Finish();

 private:
  struct State;
  explicit ResumableWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Whether work in this folder was begun and not finished.
bool HasJournal(const std::string& folder);
// Forgets it. Fine when there is none.
Status RemoveJournal(const std::string& folder);

}  // namespace hadal
