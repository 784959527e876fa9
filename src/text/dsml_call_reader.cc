// Calls of V3.2: tags whose names begin with ｜DSML｜, one for each argument. The arguments become
// a JSON object whose text is sent as it grows. Specification, 9.6.
#include <set>
#include <string>

#include "base/json.h"
#include "text/markers.h"
#include "text/python_json.h"
#include "text/tool_call_reader.h"

namespace hadal {
namespace {

using namespace markers;

constexpr size_t kMaxKeyBytes = 1024;
constexpr std::string_view kTagEnd = "\">";
constexpr std::string_view kIsString = "\" string=\"true";
constexpr std::string_view kIsNotString = "\" string=\"false";

// Indices of tags_.
enum Tag { kParameterTag, kInvokeEndTag, kCallsEndTag };

class DsmlCallReader : public ToolCallReader {
 public:
  const MarkerSet& openings() const override { return openings_; }

  Header ReadHeader(std::string_view text, size_t* used, DeltaSink* sink) override {
    const size_t gap = GapLength(text);
    if (gap > kMaxGapBytes) return Header::kNone;
    const std::string_view tag = text.substr(gap);
    const Fit end = FitAtFront(tag, kDsmlCallsEnd), call = FitAtFront(tag, kDsmlInvoke);
    if (end == Fit::kWhole) {
      *used = gap + kDsmlCallsEnd.size();
      return Header::kEnd;
    }
    if (call != Fit::kWhole) {
      return end == Fit::kPartly || call == Fit::kPartly ? Header::kUndecided : Header::kNone;
    }
    // No farther than a name may reach, lest many tags without an end each look at all the text.
    std::string_view name = tag.substr(kDsmlInvoke.size(), kMaxToolNameBytes + kTagEnd.size());
    const size_t length = name.find(kTagEnd);
    name = name.substr(0, length);
    if (length == std::string_view::npos && name.ends_with('"')) name.remove_suffix(1);
    if (!MayBeToolName(name) || length == 0) return Header::kNone;
    if (length == std::string_view::npos) return Header::kUndecided;
    *used = gap + kDsmlInvoke.size() + length + kTagEnd.size();
    part_ = Part::kTags;
    keys_.clear();
    sink->StartCall(name);
    return Header::kCall;
  }

  bool ReadBody(std::string_view text, size_t* used, DeltaSink* sink) override {
    *used = 0;
    while (true) {
      const size_t before = *used;
      const std::string_view rest = text.substr(*used);
      if (part_ != Part::kTags) {
        *used += ReadValue(rest, sink);
      } else if (ReadTag(rest, used, sink)) {
        return true;
      }
      if (*used == before) return false;
    }
  }

  // A model that ends its turn inside a call has said what it wanted: the object is closed. A text
  // that was cut stays as broken as it is, so that nobody takes it for a whole call.
  void FinishBody(std::string_view rest, bool was_cut, DeltaSink* sink) override {
    if (was_cut && IsPieceOfMarker(rest)) rest = {};
    if (part_ != Part::kTags) AddValue(rest, sink);
    if (was_cut) return;
    CloseValue(sink);
    CloseObject(sink);
  }

 private:
  enum class Part { kTags, kString, kOther, kRepeated };

  // Between the values of a call: what is no tag there is left out. True at the end of the call.
  bool ReadTag(std::string_view text, size_t* used, DeltaSink* sink) {
    const MarkerSet::Place place = tags_.Find(text);
    *used += place.begin;
    if (place.marker_idx < 0) return false;
    if (place.marker_idx == kParameterTag) {
      *used += ReadParameterTag(text.substr(place.begin), sink);
      return false;
    }
    if (place.marker_idx == kInvokeEndTag) *used += kDsmlInvokeEnd.size();
    CloseObject(sink);
    return true;
  }

  // At a parameter's tag; returns how much of it was read, 0 while its end is not there.
  size_t ReadParameterTag(std::string_view text, DeltaSink* sink) {
    text = text.substr(kDsmlParameter.size(), kMaxKeyBytes);
    const size_t end = text.find(kTagEnd);
    if (end == std::string_view::npos) {
      return text.size() < kMaxKeyBytes ? 0 : kDsmlParameter.size();
    }
    std::string_view key = text.substr(0, end);
    part_ = Part::kString;  // also where the attribute is missing
    if (key.ends_with(kIsString)) {
      key.remove_suffix(kIsString.size());
    } else if (key.ends_with(kIsNotString)) {
      key.remove_suffix(kIsNotString.size());
      part_ = Part::kOther;
    }
    OpenValue(key, sink);
    return kDsmlParameter.size() + end + kTagEnd.size();
  }

  void OpenValue(std::string_view key, DeltaSink* sink) {
    value_.clear();
    const bool is_first = keys_.empty();
    if (!keys_.emplace(key).second) {
      part_ = Part::kRepeated;  // the first one has been sent, and JSON has one value for a key
      return;
    }
    std::string text = is_first ? "{\"" : ", \"";
    AppendPythonJsonEscaped(key, &text);
    text += part_ == Part::kString ? "\": \"" : "\": ";
    sink->AddArguments(text);
  }

  size_t ReadValue(std::string_view text, DeltaSink* sink) {
    const MarkerSet::Place place = value_end_.Find(text);
    AddValue(text.substr(0, place.begin), sink);
    if (place.marker_idx < 0) return place.begin;
    CloseValue(sink);
    return place.begin + kDsmlParameterEnd.size();
  }

  void AddValue(std::string_view text, DeltaSink* sink) {
    if (part_ == Part::kOther) value_.append(text);  // whether it is JSON shows at its end
    if (part_ != Part::kString) return;
    std::string escaped;
    AppendPythonJsonEscaped(text, &escaped);
    sink->AddArguments(escaped);
  }

  void CloseValue(DeltaSink* sink) {
    if (part_ == Part::kString) sink->AddArguments("\"");
    if (part_ == Part::kOther) {
      std::string text;
      if (Json::accept(value_)) {
        text = value_;
      } else {
        text = "\"";
        AppendPythonJsonEscaped(value_, &text);
        text += '"';
      }
      sink->AddArguments(text);
    }
    part_ = Part::kTags;
  }

  void CloseObject(DeltaSink* sink) { sink->AddArguments(keys_.empty() ? "{}" : "}"); }

  // The line ends before the opening belong to it.
  const MarkerSet openings_{{std::string("\n\n").append(kDsmlCallsBegin),
                             std::string("\n").append(kDsmlCallsBegin),
                             std::string(kDsmlCallsBegin)}};
  const MarkerSet tags_{
      {std::string(kDsmlParameter), std::string(kDsmlInvokeEnd), std::string(kDsmlCallsEnd)}};
  const MarkerSet value_end_{{std::string(kDsmlParameterEnd)}};
  Part part_ = Part::kTags;
  std::set<std::string, std::less<>> keys_;  // of the call that is being read
  std::string value_;                        // of a value that is no string
};

}  // namespace

std::unique_ptr<ToolCallReader> MakeDsmlCallReader() { return std::make_unique<DsmlCallReader>(); }

}  // namespace hadal
