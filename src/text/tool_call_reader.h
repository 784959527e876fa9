// Reads tool calls out of the model's text while it streams; one reader per way of writing them.
// A reader decides by the text alone, never by how it was cut, and asks to see undecided text
// again. What it may ask for is bounded, so that reading takes linear time. Internal to text/.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/marker_set.h"
#include "text/message_parser.h"

namespace hadal {

// Names and gaps longer than this are no call. Far above what a model writes.
inline constexpr size_t kMaxToolNameBytes = 256;
inline constexpr size_t kMaxGapBytes = 64;

// Collects what the text turned out to be: into the message, and as deltas for the caller.
class DeltaSink {
 public:
  const ParsedMessage& message() const { return message_; }

  // Deltas go to `deltas` until the next call; those that it holds already are left as they are.
  void Open(std::vector<MessageDelta>* deltas);

  void AddReasoning(std::string_view text);
  void AddContent(std::string_view text);
  void StartCall(std::string_view name);
  // To the last call. REQUIRES: there is one.
  void AddArguments(std::string_view text);

 private:
  // Joins `text` to the last delta where that is of the same kind and not yet handed out.
  void AddDelta(MessageDelta::Kind kind, std::string_view text);

  ParsedMessage message_;
  std::vector<MessageDelta>* deltas_ = nullptr;
  size_t num_handed_out_ = 0;
};

class ToolCallReader {
 public:
  virtual ~ToolCallReader() = default;

  // The markers that may open a list of calls and end the content before them.
  virtual const MarkerSet& openings() const = 0;

  enum class Header {
    kUndecided,  // more text is needed
    kCall,       // a call began and was told to the sink; ReadBody goes on behind `*used`
    kEnd,        // the list is closed; the text goes on behind `*used`
    kNone,       // neither: this is ordinary text
  };
  // Behind an opening or a call. `*used` is set for kCall and kEnd only.
  virtual Header ReadHeader(std::string_view text, size_t* used, DeltaSink* sink) = 0;

  // Inside a call. Reads as far as the text is decided, sets `*used` to how far that is, and
  // returns true at the end of the call.
  virtual bool ReadBody(std::string_view text, size_t* used, DeltaSink* sink) = 0;

  // The text ended inside a call; `rest` is what ReadBody did not use.
  virtual void FinishBody(std::string_view rest, bool was_cut, DeltaSink* sink) = 0;
};

// Null for a layout without calls.
std::unique_ptr<ToolCallReader> MakeToolCallReader(ChatLayout layout);

// V2.5 to R1-0528: name, then arguments in a fenced block.
std::unique_ptr<ToolCallReader> MakeFencedCallReader();
// V3.1 and V3.2-Exp: name, separator, arguments.
std::unique_ptr<ToolCallReader> MakePlainCallReader();
// V3.2: tags, one for each argument.
std::unique_ptr<ToolCallReader> MakeDsmlCallReader();

// True for the beginning of a marker that is more than a mere "<" or line end: a cut text shows it
// to nobody.
bool IsPieceOfMarker(std::string_view text);

// Whether `name` may be the name of a tool, as far as it is there.
bool MayBeToolName(std::string_view name);

// Bytes of white space at the front.
size_t GapLength(std::string_view text);

}  // namespace hadal
