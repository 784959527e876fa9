#include "formats/safetensors.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/scalar.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A file with this header text and `num_data` bytes behind it.
std::string File(const std::string& header, size_t num_data) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(num_data, '\0');
}

Result<std::vector<TensorInfo>> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "w.safetensors");
}

std::string Refusal(const std::string& file) { return Parse(file).status().message(); }

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(Safetensors, ReadsTheMinimalFileOfTheSpecification) {
  const Json example = ReadGoldenJson("spec/number_formats.json")["safetensors_minimal"];
  const std::string file = FromHex(example["inputs"]["hex"]);
  ASSERT_EQ(file.size(), 171u);
  const auto tensors = Parse(file);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "s");
  std::vector<float> s(2);
  ASSERT_EQ((*tensors)[0].bytes.size(), 8u);
  std::memcpy(s.data(), (*tensors)[0].bytes.data(), 8);
  EXPECT_EQ(Json(s), example["expected"]["tensors"]["s"]);
  std::vector<float> w;
  for (const std::byte code : (*tensors)[1].bytes)
    w.push_back(E4m3ToFloat(static_cast<uint8_t>(code)));
  EXPECT_EQ(Json(w), example["expected"]["tensors"]["w"]);
}

TEST(Safetensors, RefusesTheInvalidFilesOfTheSpecification) {
  const Json example =
      ReadGoldenJson("spec/number_formats.json")["safetensors_invalid"]["expected"];
  int checked = 0;
  for (const auto& [name, hex] : example.items()) {
    EXPECT_THAT(Refusal(FromHex(hex)), HasSubstr("w.safetensors: ")) << name;
    ++checked;
  }
  EXPECT_EQ(checked, 8);
}

struct BadHeader {
  const char* header;
  size_t num_data;
  const char* message;
};

TEST(Safetensors, RefusalsNameTensorRuleExpectedAndFound) {
  const std::vector<BadHeader> cases = {
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)", 4, "expected a JSON object"},
      {R"({"a":7})", 0, "tensor \"a\": expected a JSON object, found 7"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "dtype: expected a value, found nothing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "shape: expected a value"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "data_offsets: expected a value"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "key \"dtype\": expected once, found twice"},
      {R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4, "found 32"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "non-negative integers"},
      {R"({"a":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", 4, "non-negative integers"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
       "non-negative integers"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
       "expected a size below 2^63 bits"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "expected whole bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "0 <= begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "0 <= begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]}})",
       4, "expected 4 bytes for F32 [1], found 3"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       4, "tensor \"a\": data_offsets: expected tensors without overlap, so begin 4, found 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
       "expected tensors without holes, so begin 0, found 1"},
      {R"({"__metadata__":{"format":1}})", 0, "__metadata__: expected an object of strings"},
      {R"({"__metadata__":"pt"})", 0, "__metadata__: expected an object of strings"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "expected once in the header, found twice"},
  };
  for (const BadHeader& item : cases) {
    SCOPED_TRACE(item.header);
    EXPECT_THAT(Refusal(File(item.header, item.num_data)),
                AllOf(HasSubstr("w.safetensors: "), HasSubstr(item.message), Not(HasSubstr("\n"))));
  }
}

TEST(Safetensors, ANameWithALineEndLeavesTheMessageOneLine) {
  EXPECT_THAT(Refusal(File(R"({"a\nb\u2028":{}})", 0)),
              AllOf(HasSubstr(R"("a\x0Ab\xE2\x80\xA8")"), Not(HasSubstr("\n"))));
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreLegal) {
  const auto tensors = Parse(File(R"({"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                  R"("y":{"dtype":"F32","shape":[0,9],"data_offsets":[4,4]},)"
                                  R"("z":{"dtype":"F4","shape":[2],"data_offsets":[4,5]}})",
                                  5));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ((*tensors)[0].num_elements(), 1);
  EXPECT_EQ((*tensors)[1].num_elements(), 0);
  EXPECT_EQ(ShapeText((*tensors)[1].shape), "[0, 9]");
  EXPECT_TRUE(Parse(File("{}", 0)).ok());
  EXPECT_TRUE(Parse(File("{}      ", 0)).ok());
}

TEST(Safetensors, DeepNestingIsRefusedWithoutRecursion) {
  std::string header = R"({"a":)";
  header += std::string(1 << 20, '[');
  EXPECT_THAT(Refusal(File(header, 0)), HasSubstr("safetensors header: expected a JSON object"));
}

// Every file that differs from a sound one in a single byte is read without touching anything
// outside it (the sanitizers watch), and never with a tensor outside its bytes.
TEST(Safetensors, NoFlippedByteLeadsOutsideTheFile) {
  const Json example = ReadGoldenJson("spec/number_formats.json")["safetensors_minimal"];
  const std::string sound = FromHex(example["inputs"]["hex"]);
  int num_refused = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xFF}) {
      std::string file = sound;
      file[i] = static_cast<char>(file[i] ^ flip);
      const auto tensors = Parse(file);
      if (!tensors.ok()) {
        ++num_refused;
        continue;
      }
      const auto* begin = reinterpret_cast<const std::byte*>(file.data());
      for (const TensorInfo& tensor : *tensors) {
        ASSERT_GE(tensor.bytes.data(), begin);
        ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), begin + file.size());
      }
    }
  }
  EXPECT_GT(num_refused, 400);
}

}  // namespace
}  // namespace hadal
