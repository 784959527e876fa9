// Scores and weighted values of attention, as small matrix products: many queries (the heads that
// share a latent, the tokens of a prompt) meet the same keys.
#include "kernels/avx2/combine.h"
#include "kernels/avx2/parts.h"
#include "kernels/avx2/tile.h"

namespace hadal::avx2 {
namespace {

struct KeyRows {
  const float* const* keys;

  void Get(int key, int num, int col, int, const float** pointers) const {
    for (int i = 0; i < num; ++i) pointers[i] = keys[key + i] + col;
  }
};

void AttentionScores(const ScoreArgs& args) {
  KeyRows source{args.keys};
  TiledProduct(Rows{args.queries, args.query_stride, args.num_queries}, args.dim, 0, args.num_keys,
               &source, Finish{args.scale, false}, args.scores, args.score_stride);
}

void AttentionValues(const ValueArgs& args) {
  for (int first = 0; first < args.num_values; first += kCombineRows) {
    const int rest = args.num_values - first;
    CombineSpan(args, RowSpan{first, first + (rest < kCombineRows ? rest : kCombineRows)});
  }
}

}  // namespace

void AddAttention(KernelTable* table) {
  table->attention_scores = AttentionScores;
  table->attention_values = AttentionValues;
}

}  // namespace hadal::avx2
