// Ranks of a distributed run. Today there is one; the interface marks where the others will join.
#pragma once

namespace hadal {

class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;
};

// One rank: this process.
class LocalComm final : public Comm {
 public:
  int rank() const override { return 0; }
  int num_ranks() const override { return 1; }
};

}  // namespace hadal
