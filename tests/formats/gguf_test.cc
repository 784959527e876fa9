#include "formats/gguf.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "sys/mapped_file.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// What a refusal says; empty when the file is sound.
std::string Refusal(const std::string& file) {
  return ParseGguf(Bytes(file), "some.gguf").status().message();
}

// Puts files together as the specification describes them.
class Writer {
 public:
  template <class T>
  Writer& Number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
    return *this;
  }
  Writer& String(const std::string& text) {
    Number<uint64_t>(text.size());
    text_ += text;
    return *this;
  }
  Writer& Head(uint64_t num_tensors, uint64_t num_keys) {
    text_ += "GGUF";
    return Number<uint32_t>(3).Number(num_tensors).Number(num_keys);
  }
  Writer& Key(const std::string& key, GgufType type) {
    return String(key).Number(static_cast<uint32_t>(type));
  }
  // A row of floats.
  Writer& Tensor(const std::string& name, uint64_t size, uint64_t offset) {
    return String(name).Number<uint32_t>(1).Number(size).Number<uint32_t>(0).Number(offset);
  }
  Writer& Pad() {
    text_.resize((text_.size() + 31) / 32 * 32);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

TEST(Gguf, ReadsTheMinimalFileOfTheSpecification) {
  const Json example = ReadGoldenJson("spec/number_formats.json").at("gguf_minimal");
  const auto hex = example["inputs"]["hex"].get<std::string>();
  std::string file;
  for (size_t i = 0; i < hex.size(); i += 2) {
    file += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  ASSERT_EQ(file.size(), example["inputs"]["size"].get<size_t>());
  const Result<GgufFile> found = ParseGguf(Bytes(file), "minimal.gguf");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->version, 3u);
  EXPECT_EQ(found->alignment, 32);
  EXPECT_EQ(found->data_begin, example["expected"]["tensor_data_start"].get<int64_t>());
  ASSERT_EQ(found->metadata.size(), 2u);
  EXPECT_EQ(found->Find("general.architecture")->AsString(), "deepseek2");
  EXPECT_EQ(found->Find("deepseek2.attention.kv_lora_rank")->AsInt(), 512);
  EXPECT_EQ(found->Find("deepseek2"), nullptr);

  ASSERT_EQ(found->tensors.size(), 1u);
  const GgufTensor& tensor = found->tensors[0];
  EXPECT_EQ(tensor.type.type, GgmlType::kF32);
  EXPECT_THAT(tensor.sizes, ElementsAre(4, 2));
  const auto rows = example["expected"]["rows"].get<std::vector<std::vector<float>>>();
  ASSERT_EQ(tensor.bytes.size(), 8 * sizeof(float));
  std::vector<float> values(8);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 4), rows[0]);
  EXPECT_EQ(std::vector(values.begin() + 4, values.end()), rows[1]);
}

// C123 and C124: what container_files.json says of each file.
TEST(Gguf, CraftedFilesAreRefusedAndSoundOnesOpen) {
  const Json list = ReadGoldenJson("formats/container_files.json");
  int checked = 0;
  for (const Json& item : list["gguf"]) {
    const std::string path = GoldenPath("formats/gguf/" + item["file"].get<std::string>());
    SCOPED_TRACE(path);
    const Result<MappedFile> file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok());
    const std::string message = ParseGguf(file->bytes(), path).status().message();
    if (item["expect"] == "open") {
      EXPECT_EQ(message, "") << item["why"];
    } else {
      EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("expected"), HasSubstr("found"),
                                 Not(HasSubstr("\n"))))
          << item["why"];
    }
    ++checked;
  }
  EXPECT_EQ(checked, 20);
}

TEST(Gguf, AFileOfTheOtherByteOrderIsNamed) {
  const auto file = MappedFile::Open(GoldenPath("formats/gguf/version_swapped.gguf"));
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(ParseGguf(file->bytes(), "x").status().message(), HasSubstr("byte order"));
}

// C128: the byte of a flag was read wrongly.
TEST(Gguf, AFlagOfZeroIsFalseAndOfOneIsTrue) {
  const auto with_byte = [](uint8_t byte) {
    return Writer().Head(0, 1).Key("add_bos_token", GgufType::kBool).Number(byte).text();
  };
  for (const bool value : {false, true}) {
    const std::string file = with_byte(value ? 1 : 0);
    const Result<GgufFile> found = ParseGguf(Bytes(file), "x");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->Find("add_bos_token")->AsBool(), value);
    EXPECT_EQ(found->Find("add_bos_token")->AsInt(), std::nullopt);
  }
  EXPECT_THAT(Refusal(with_byte(2)), AllOf(HasSubstr("add_bos_token"), HasSubstr("found 2")));
}

TEST(Gguf, NumbersOfEveryWidthAreReadGenerically) {
  const std::string file = Writer()
                               .Head(0, 10)
                               .Key("u8", GgufType::kU8)
                               .Number<uint8_t>(255)
                               .Key("i8", GgufType::kI8)
                               .Number<int8_t>(-128)
                               .Key("u16", GgufType::kU16)
                               .Number<uint16_t>(65535)
                               .Key("i16", GgufType::kI16)
                               .Number<int16_t>(-2)
                               .Key("u32", GgufType::kU32)
                               .Number<uint32_t>(4294967295u)
                               .Key("i32", GgufType::kI32)
                               .Number<int32_t>(-3)
                               .Key("u64", GgufType::kU64)
                               .Number<uint64_t>(std::numeric_limits<uint64_t>::max())
                               .Key("i64", GgufType::kI64)
                               .Number<int64_t>(std::numeric_limits<int64_t>::min())
                               .Key("f32", GgufType::kF32)
                               .Number(0.5f)
                               .Key("f64", GgufType::kF64)
                               .Number(0.25)
                               .text();
  const Result<GgufFile> found = ParseGguf(Bytes(file), "x");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->Find("u8")->AsInt(), 255);
  EXPECT_EQ(found->Find("i8")->AsInt(), -128);
  EXPECT_EQ(found->Find("u16")->AsInt(), 65535);
  EXPECT_EQ(found->Find("i16")->AsInt(), -2);
  EXPECT_EQ(found->Find("u32")->AsInt(), 4294967295);
  EXPECT_EQ(found->Find("i32")->AsInt(), -3);
  EXPECT_EQ(found->Find("u64")->AsInt(), std::nullopt);
  EXPECT_EQ(found->Find("u64")->AsDouble(), 0x1.0p64);
  EXPECT_EQ(found->Find("i64")->AsInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(found->Find("f32")->AsDouble(), 0.5);
  EXPECT_EQ(found->Find("f32")->AsInt(), std::nullopt);
  EXPECT_EQ(found->Find("f64")->AsDouble(), 0.25);
  EXPECT_EQ(found->Find("f64")->AsString(), std::nullopt);
}

TEST(Gguf, ArraysKeepTheirElements) {
  const std::string file = Writer()
                               .Head(0, 2)
                               .Key("tokens", GgufType::kArray)
                               .Number(static_cast<uint32_t>(GgufType::kString))
                               .Number<uint64_t>(3)
                               .String("a")
                               .String("")
                               .String("bcd")
                               .Key("kinds", GgufType::kArray)
                               .Number(static_cast<uint32_t>(GgufType::kI32))
                               .Number<uint64_t>(2)
                               .Number<int32_t>(7)
                               .Number<int32_t>(8)
                               .text();
  const Result<GgufFile> found = ParseGguf(Bytes(file), "x");
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_NE(found->Find("tokens")->AsArray(), nullptr);
  EXPECT_THAT(found->Find("tokens")->AsArray()->Strings(), ElementsAre("a", "", "bcd"));
  const GgufArray* kinds = found->Find("kinds")->AsArray();
  EXPECT_EQ(kinds->element_type, GgufType::kI32);
  EXPECT_EQ(kinds->count, 2u);
  EXPECT_EQ(kinds->bytes.size(), 8u);
}

TEST(Gguf, RefusalsNameTensorRuleExpectedAndFound) {
  const std::string data(64, '\0');
  EXPECT_EQ(Refusal(Writer().Head(1, 0).Tensor("w", 8, 64).Pad().text() + data),
            "some.gguf: tensor \"w\": expected 32 bytes at 64 of the data, found 64 bytes of data "
            "in the file");
  EXPECT_EQ(Refusal(Writer().Head(1, 0).Tensor("w", 8, 4).Pad().text() + data),
            "some.gguf: tensor \"w\": expected an offset that is a multiple of 32, found 4");
  EXPECT_EQ(Refusal(Writer().Head(2, 0).Tensor("a", 9, 0).Tensor("b", 8, 32).Pad().text() + data),
            "some.gguf: tensor \"b\": expected an offset from 36 on, behind \"a\", found 32");
  EXPECT_EQ(Refusal(Writer()
                        .Head(0, 2)
                        .Key("k", GgufType::kU8)
                        .Number<uint8_t>(0)
                        .Key("k", GgufType::kU8)
                        .Number<uint8_t>(0)
                        .text()),
            "some.gguf: key \"k\": expected once, found twice");
  EXPECT_THAT(Refusal(Writer().Head(1, 0).Tensor("\xff", 8, 0).Pad().text() + data),
              HasSubstr("UTF-8"));
  EXPECT_THAT(Refusal(Writer().Head(1, 0).Tensor("", 8, 0).Pad().text() + data),
              HasSubstr("found nothing"));
  EXPECT_THAT(Refusal(""), HasSubstr("magic"));
}

TEST(Gguf, ABlockTypeThatCannotBeDecodedIsUnsupported) {
  const std::string file = Writer()
                               .Head(1, 0)
                               .String("w")
                               .Number<uint32_t>(1)
                               .Number<uint64_t>(256)
                               .Number<uint32_t>(9999)
                               .Number<uint64_t>(0)
                               .Pad()
                               .text();
  const auto found = ParseGguf(Bytes(file), "x");
  EXPECT_EQ(found.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(found.status().message(), HasSubstr("9999"));
}

// A row of Q8_0 has whole blocks of 32.
TEST(Gguf, RowsThatEndInsideABlockAreRefused) {
  const auto with_row = [](uint64_t size) {
    return Writer()
               .Head(1, 0)
               .String("w")
               .Number<uint32_t>(1)
               .Number(size)
               .Number<uint32_t>(8)
               .Number<uint64_t>(0)
               .Pad()
               .text() +
           std::string(68, '\0');
  };
  EXPECT_EQ(Refusal(with_row(64)), "");
  EXPECT_THAT(Refusal(with_row(48)), HasSubstr("whole blocks of 32"));
}

TEST(Gguf, NoFlippedByteLeadsOutsideTheFile) {
  const std::string sound = Writer()
                                .Head(2, 2)
                                .Key("general.alignment", GgufType::kU32)
                                .Number<uint32_t>(32)
                                .Key("tokens", GgufType::kArray)
                                .Number(static_cast<uint32_t>(GgufType::kString))
                                .Number<uint64_t>(2)
                                .String("a")
                                .String("bc")
                                .Tensor("a", 8, 0)
                                .Tensor("b", 8, 32)
                                .Pad()
                                .text() +
                            std::string(64, '\1');
  ASSERT_EQ(Refusal(sound), "");
  int num_refused = 0;
  for (size_t at = 0; at < sound.size(); ++at) {
    for (const int bits : {0x01, 0x80, 0xff}) {
      std::string bent = sound;
      bent[at] = static_cast<char>(bent[at] ^ bits);
      const Result<GgufFile> found = ParseGguf(Bytes(bent), "x");
      num_refused += found.ok() ? 0 : 1;
      if (!found.ok()) continue;
      for (const GgufTensor& tensor : found->tensors) {
        const auto* end = reinterpret_cast<const std::byte*>(bent.data() + bent.size());
        EXPECT_TRUE(tensor.bytes.data() + tensor.bytes.size() <= end);
      }
    }
  }
  EXPECT_GT(num_refused, 100);
  for (size_t size = 0; size < sound.size(); ++size) {
    EXPECT_NE(Refusal(sound.substr(0, size)), "") << size;
  }
}

}  // namespace
}  // namespace hadal
