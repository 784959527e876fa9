// Calls between control tokens: the fenced form of V2.5 to R1-0528 and the plain form of V3.1.
// Specification, 9.6:
//   <calls begin><call begin>function<sep>NAME⏎```json⏎ARGUMENTS⏎```<call end>...<calls end>
//   <calls begin><call begin>NAME<sep>ARGUMENTS<call end>...<calls end>
#include <algorithm>
#include <string>

#include "text/markers.h"
#include "text/tool_call_reader.h"

namespace hadal {
namespace {

using namespace markers;

enum class Form { kFenced, kPlain };

constexpr std::string_view kFence = "```json";

// A marker that ends the arguments, with the end of the fence before it where there is one.
std::vector<std::string> BodyEnds(Form form) {
  std::vector<std::string> ends;
  for (const std::string_view marker : {kCallEnd, kCallsEnd, kCallBegin}) {
    ends.emplace_back(marker);
    if (form == Form::kPlain) continue;
    for (const char* fence : {"\n```", "```", "\n```\n", "```\n"})
      ends.push_back(std::string(fence).append(marker));
  }
  return ends;
}

// Walks along what is expected. Once something did not fit, or the text ran out, it stays there.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  bool fits() const { return fit_ == Fit::kWhole; }
  bool ran_out() const { return fit_ == Fit::kPartly; }
  size_t used() const { return used_; }
  std::string_view rest() const { return text_.substr(used_); }

  void Literal(std::string_view literal) {
    if (!fits()) return;
    fit_ = FitAtFront(rest(), literal);
    if (fits()) used_ += literal.size();
  }

  void Gap() {
    if (!fits()) return;
    const size_t length = GapLength(rest());
    if (length > kMaxGapBytes) {
      fit_ = Fit::kNot;
    } else if (length == rest().size()) {
      fit_ = Fit::kPartly;
    } else {
      used_ += length;
    }
  }

  // Up to `end`, which stays unread.
  std::string_view Name(char end) {
    if (!fits()) return {};
    std::string_view name = rest().substr(0, kMaxToolNameBytes + 1);
    const size_t length = std::min(name.find(end), name.size());
    name = name.substr(0, length);
    const bool may_be_name = MayBeToolName(name);
    if (may_be_name && length == rest().size()) {
      fit_ = Fit::kPartly;
    } else if (!may_be_name || name.empty()) {
      fit_ = Fit::kNot;
    }
    if (fits()) used_ += length;
    return name;
  }

 private:
  std::string_view text_;
  size_t used_ = 0;
  Fit fit_ = Fit::kWhole;
};

class TokenCallReader : public ToolCallReader {
 public:
  explicit TokenCallReader(Form form)
      : form_(form), openings_({std::string(kCallsBegin)}), body_ends_(BodyEnds(form)) {}

  const MarkerSet& openings() const override { return openings_; }

  Header ReadHeader(std::string_view text, size_t* used, DeltaSink* sink) override {
    Walk end(text);
    end.Gap();
    end.Literal(kCallsEnd);
    if (end.fits()) {
      *used = end.used();
      return Header::kEnd;
    }
    Walk call(text);
    call.Gap();
    call.Literal(kCallBegin);
    const std::string_view name = form_ == Form::kFenced ? FencedName(&call) : PlainName(&call);
    if (call.fits()) {
      *used = call.used();
      has_arguments_ = false;
      sink->StartCall(name);
      return Header::kCall;
    }
    return end.ran_out() || call.ran_out() ? Header::kUndecided : Header::kNone;
  }

  bool ReadBody(std::string_view text, size_t* used, DeltaSink* sink) override {
    const size_t gap = has_arguments_ ? 0 : GapLength(text);
    const MarkerSet::Place place = body_ends_.Find(text.substr(gap));
    *used = gap + place.begin;
    AddArguments(text.substr(gap, place.begin), sink);
    if (place.marker_idx < 0) return false;
    // Only the end of the call is read with it: the other markers say what comes next.
    const std::string& end = body_ends_.marker(place.marker_idx);
    *used += end.ends_with(kCallEnd) ? end.size() : end.rfind('<');
    if (!has_arguments_) AddArguments("{}", sink);
    return true;
  }

  void FinishBody(std::string_view rest, bool was_cut, DeltaSink* sink) override {
    // Of the fence, nothing belongs to the arguments.
    const bool is_fence = rest.starts_with('\n') || rest.starts_with('`');
    if (is_fence || (was_cut && IsPieceOfMarker(rest))) return;
    AddArguments(rest, sink);
  }

 private:
  static std::string_view FencedName(Walk* walk) {
    walk->Literal("function");
    walk->Literal(kSeparator);
    const std::string_view name = walk->Name('\n');
    walk->Literal("\n");
    walk->Literal(kFence);
    return name;
  }

  // Arguments must look like an object. This keeps the fenced form, which a model of another
  // version may write, from being taken for a call of a tool "function".
  static std::string_view PlainName(Walk* walk) {
    const std::string_view name = walk->Name('<');
    walk->Literal(kSeparator);
    walk->Gap();
    Walk object = *walk, nothing = *walk;
    object.Literal("{");
    nothing.Literal(kCallEnd);
    if (!object.fits() && !nothing.fits()) *walk = nothing;
    return name;
  }

  void AddArguments(std::string_view text, DeltaSink* sink) {
    if (text.empty()) return;
    has_arguments_ = true;
    sink->AddArguments(text);
  }

  const Form form_;
  const MarkerSet openings_;
  const MarkerSet body_ends_;
  bool has_arguments_ = false;  // of the call that is being read
};

}  // namespace

std::unique_ptr<ToolCallReader> MakeFencedCallReader() {
  return std::make_unique<TokenCallReader>(Form::kFenced);
}

std::unique_ptr<ToolCallReader> MakePlainCallReader() {
  return std::make_unique<TokenCallReader>(Form::kPlain);
}

}  // namespace hadal
