// hadal tokenize: text to ids and back, line by line.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/json_lines.h"
#include "apps/model_path.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

struct TokenizeFlags {
  std::string model;
  bool wants_specials = false;
  bool is_decoding = false;
  bool wants_json = false;
};

void PrintTable(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) {
    const std::string shown = RepairUtf8(tokenizer.TokenBytes(id));
    std::cout << fmt::format("{:>8}  {}\n", id.value, DumpJson(shown));
  }
  std::cout << fmt::format("{:>8}  tokens\n", ids.size());
}

Status EncodeLine(const Tokenizer& tokenizer, const TokenizeFlags& flags, const Json& line,
                  std::string_view what) {
  ASSIGN_OR_RETURN(const std::string text, ReadString(line, "text", what));
  const std::vector<TokenId> ids =
      flags.wants_specials ? tokenizer.EncodeWithSpecials(text) : tokenizer.Encode(text);
  if (!flags.wants_json) {
    PrintTable(tokenizer, ids);
    return Status::Ok();
  }
  Json numbers = Json::array();
  for (const TokenId id : ids) numbers.push_back(id.value);
  PrintJsonLine(Json{{"ids", std::move(numbers)}});
  return Status::Ok();
}

Result<std::vector<TokenId>> ReadIds(const Json& line, std::string_view what) {
  const Json list = HasValue(line, "ids") ? line["ids"] : Json();
  if (!list.is_array()) {
    return Status::Corrupt(
        fmt::format("{}: ids: expected a list of token ids, found {}", what, DumpJson(list)));
  }
  std::vector<TokenId> ids;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number_integer() || list[i] < 0 || list[i] > INT32_MAX) {
      return Status::Corrupt(fmt::format("{}: ids[{}]: expected an integer from 0 to {}, found {}",
                                         what, i, INT32_MAX, DumpJson(list[i])));
    }
    ids.push_back(TokenId{list[i].get<int32_t>()});
  }
  return ids;
}

Status DecodeLine(const Tokenizer& tokenizer, const TokenizeFlags& flags, const Json& line,
                  std::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ReadIds(line, what));
  const std::string text = RepairUtf8(tokenizer.Decode(ids));
  if (flags.wants_json) {
    PrintJsonLine(Json{{"text", text}});
  } else {
    std::cout << text << '\n';
  }
  return Status::Ok();
}

Status RunTokenize(const TokenizeFlags& flags) {
  ASSIGN_OR_RETURN(const std::string folder, ModelFolderPath(flags.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(folder));
  return ForEachInputLine([&](std::string_view text, const std::string& what) -> Status {
    ASSIGN_OR_RETURN(const Json line, ParseJson(text, what));
    return flags.is_decoding ? DecodeLine(*tokenizer, flags, line, what)
                             : EncodeLine(*tokenizer, flags, line, what);
  });
}

}  // namespace

void AddTokenizeCommand(CLI::App* app, CommandBody* body) {
  CLI::App* command = app->add_subcommand(
      "tokenize",
      "Text to token ids, or back. Reads JSON Lines from standard input: {\"text\": \"...\"}, or\n"
      "{\"ids\": [...]} with --decode. No begin token is added; control tokens in the text are\n"
      "text unless --specials is given.");
  const auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("MODEL", flags->model, "Model folder or file (default: the bundled model)");
  command->add_flag("--specials", flags->wants_specials,
                    "Control tokens written in the text become their ids");
  command->add_flag("--decode", flags->is_decoding, "Ids to text, control tokens written out");
  command->add_flag("--json", flags->wants_json,
                    "One line {\"ids\": [...]} or {\"text\": \"...\"} for each line read");
  command->callback([flags, body] { *body = [flags] { return RunTokenize(*flags); }; });
}

}  // namespace hadal
