// Fetching rows of words ahead of their use. Included inside the unnamed namespace of a set;
// includes nothing itself. REQUIRES: kernel_table.h.

// A group of columns of the rows that follow after a tile, those of keys [first, first + count): a
// few at a time, for many at once would stall.
inline void FetchNextKeys(const WordScoreArgs& args, int first, int count, int group) {
  if (args.next_keys == nullptr) return;
  const bool is_last = group + 1 == NumCacheGroups(args.dim);
  for (int j = first; j < first + count; ++j) {
    const std::byte* row = args.next_keys + j * args.key_bytes;
    __builtin_prefetch(row + 2 * group * kCacheGroup, 0, 2);
    __builtin_prefetch(row + 2 * group * kCacheGroup + 64, 0, 2);
    if (is_last) __builtin_prefetch(row + WordScalesOffset(args.key_cols), 0, 2);
  }
}
