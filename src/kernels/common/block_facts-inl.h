// What kernel sets have to know of GGUF's block types, and how rows that meet them are rounded:
// sets that share this layout may take each other's rows. Included inside the unnamed namespace of
// a set, after kernel_table.h; includes nothing itself.

constexpr int kRun = 32;  // columns
enum class MinUse { kNone, kAdd, kSubtract };

constexpr MinUse UseOfMin(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ4_1:
    case QuantFormat::kQ5_1:
      return MinUse::kAdd;
    case QuantFormat::kQ2_K:
    case QuantFormat::kQ4_K:
    case QuantFormat::kQ5_K:
      return MinUse::kSubtract;
    default:
      return MinUse::kNone;
  }
}

// Elements that share a scale.
constexpr int ScaleElements(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
    case QuantFormat::kQ3_K:
    case QuantFormat::kQ6_K:
      return 16;
    default:
      return 32;
  }
}

// What is stored more than the code, so that it has no sign; 0 for types whose codes have one.
constexpr int CodeOffset(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ4_0:
      return 8;
    case QuantFormat::kQ5_0:
      return 16;
    case QuantFormat::kQ3_K:
      return 4;
    case QuantFormat::kQ6_K:
      return 32;
    default:
      return 0;
  }
}

constexpr bool HasSignedCodes(QuantFormat format) {
  return format == QuantFormat::kQ8_0 || format == QuantFormat::kIq4Nl ||
         format == QuantFormat::kIq4Xs;
}

// A rounded row that meets a blocked weight: for every 32 columns their codes as bytes, the scale,
// and two sums, of each half for types with a scale for 16 columns, else the first of all 32. They
// are what corrects an offset or a minimum: for types with an offset two words, the sums of the
// codes whose column % 4 is 0 or 1 and 2 or 3; for the others a float, the sum times the scale.
constexpr int kRunScaleOffset = kRun;
constexpr int kRunSumsOffset = kRun + 4;
constexpr int kRoundedRunBytes = kRun + 12;
