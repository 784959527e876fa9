#include "text/message_parser.h"

#include <algorithm>
#include <utility>

#include "text/markers.h"
#include "text/tool_call_reader.h"

namespace hadal {
namespace {

using markers::kEndThink;
using markers::kThink;

struct Habits {
  bool writes_think_tags = false;
  // R1 sets its answer apart from the tags by line ends that belong to neither.
  bool spaces_out_tags = false;
};

Habits HabitsOf(ChatLayout layout) {
  switch (layout) {
    case ChatLayout::kV2:
    case ChatLayout::kV25:
    case ChatLayout::kV3:
    case ChatLayout::kV30324:
      return {};
    case ChatLayout::kR1:
    case ChatLayout::kR10528:
      return {.writes_think_tags = true, .spaces_out_tags = true};
    case ChatLayout::kV31:
    case ChatLayout::kV32Exp:
    case ChatLayout::kV32:
      return {.writes_think_tags = true};
  }
  return {};
}

}  // namespace

// Text goes from `buffer_` through the states below. A state takes from the front what is decided;
// the rest waits for more. What waits is bounded by the length of a marker, a name and a gap.
class MessageParser::Impl {
 public:
  Impl(ChatLayout layout, bool starts_in_reasoning)
      : habits_(HabitsOf(layout)), reader_(MakeToolCallReader(layout)) {
    if (starts_in_reasoning) {
      state_ = State::kReasoning;
    } else if (!habits_.writes_think_tags) {
      state_ = State::kContent;
    }
  }

  void Push(std::string_view text, std::vector<MessageDelta>* deltas) {
    sink_.Open(deltas);
    buffer_.append(text);
    std::string_view rest = buffer_;
    while (true) {
      const State before = state_;
      const size_t used = Step(rest);
      rest.remove_prefix(used);
      if (used == 0 && state_ == before) break;
    }
    buffer_.erase(0, buffer_.size() - rest.size());
  }

  void Finish(bool was_cut, std::vector<MessageDelta>* deltas) {
    sink_.Open(deltas);
    const std::string rest = std::exchange(buffer_, {});
    switch (state_) {
      case State::kReasoning:
        sink_.AddReasoning(rest);
        break;
      case State::kStart:
      case State::kContent:
        if (!was_cut || !IsPieceOfMarker(rest)) sink_.AddContent(rest);
        break;
      case State::kOpening:  // a list of calls without a call is text
        if (!was_cut) sink_.AddContent(rest);
        break;
      case State::kBetweenCalls:
        if (!was_cut && GapLength(rest) < rest.size()) sink_.AddContent(rest);
        break;
      case State::kCall:
        reader_->FinishBody(rest, was_cut, &sink_);
        state_ = State::kBetweenCalls;
        break;
      case State::kReasoningGap:
      case State::kContentGap:
      case State::kCallsGap:
        break;
    }
  }

  const ParsedMessage& message() const { return sink_.message(); }
  bool is_in_reasoning() const {
    return state_ == State::kReasoning || state_ == State::kReasoningGap;
  }

 private:
  enum class State {
    kStart,         // a think tag may come
    kReasoningGap,  // line ends behind the opening tag
    kReasoning,
    kContentGap,  // line ends behind the closing tag
    kContent,
    kOpening,       // at the opening of a list of calls, which may still turn out to be text
    kCall,          // inside a call
    kBetweenCalls,  // behind a call, the list still open
    kCallsGap,      // white space behind the list
  };

  // Takes decided text from the front of `text`, returns how much. No text taken and no change of
  // the state: more is needed.
  size_t Step(std::string_view text) {
    switch (state_) {
      case State::kStart:
        return ReadStart(text);
      case State::kReasoningGap:
        return SkipGap(text, "\r\n", State::kReasoning);
      case State::kReasoning:
        return ReadReasoning(text);
      case State::kContentGap:
        return SkipGap(text, "\r\n", State::kContent);
      case State::kContent:
        return ReadContent(text);
      case State::kOpening:
        return ReadOpening(text);
      case State::kCall:
        return ReadCall(text);
      case State::kBetweenCalls:
        return ReadBetweenCalls(text);
      case State::kCallsGap:
        return SkipGap(text, " \t\r\n", State::kContent);
    }
    return 0;
  }

  // A closing tag here closes nothing: the prompt had no open reasoning.
  size_t ReadStart(std::string_view text) {
    const Fit open = FitAtFront(text, kThink), close = FitAtFront(text, kEndThink);
    if (open == Fit::kWhole) {
      state_ = habits_.spaces_out_tags ? State::kReasoningGap : State::kReasoning;
      return kThink.size();
    }
    if (close == Fit::kWhole) return CloseReasoning();
    if (open == Fit::kNot && close == Fit::kNot) state_ = State::kContent;
    return 0;
  }

  size_t CloseReasoning() {
    state_ = habits_.spaces_out_tags ? State::kContentGap : State::kContent;
    return kEndThink.size();
  }

  // Calls inside it are thoughts about calls.
  size_t ReadReasoning(std::string_view text) {
    const MarkerSet::Place place = reasoning_end_.Find(text);
    sink_.AddReasoning(text.substr(0, place.begin));
    return place.begin + (place.marker_idx < 0 ? 0 : CloseReasoning());
  }

  size_t SkipGap(std::string_view text, std::string_view blanks, State next) {
    const size_t length = std::min(text.find_first_not_of(blanks), text.size());
    if (length < text.size()) state_ = next;
    return length;
  }

  size_t ReadContent(std::string_view text) {
    if (reader_ == nullptr) {
      sink_.AddContent(text);
      return text.size();
    }
    const MarkerSet::Place place = reader_->openings().Find(text);
    sink_.AddContent(text.substr(0, place.begin));
    if (place.marker_idx >= 0) {
      opening_length_ = reader_->openings().marker(place.marker_idx).size();
      state_ = State::kOpening;
    }
    return place.begin;
  }

  size_t ReadOpening(std::string_view text) {
    size_t used = 0;
    switch (reader_->ReadHeader(text.substr(opening_length_), &used, &sink_)) {
      case ToolCallReader::Header::kUndecided:
        return 0;
      case ToolCallReader::Header::kCall:
        state_ = State::kCall;
        return opening_length_ + used;
      default:  // a list without calls, or none at all
        sink_.AddContent(text.substr(0, opening_length_));
        state_ = State::kContent;
        return opening_length_;
    }
  }

  size_t ReadCall(std::string_view text) {
    size_t used = 0;
    if (reader_->ReadBody(text, &used, &sink_)) state_ = State::kBetweenCalls;
    return used;
  }

  size_t ReadBetweenCalls(std::string_view text) {
    size_t used = 0;
    switch (reader_->ReadHeader(text, &used, &sink_)) {
      case ToolCallReader::Header::kUndecided:
        break;
      case ToolCallReader::Header::kCall:
        state_ = State::kCall;
        break;
      case ToolCallReader::Header::kEnd:
        state_ = State::kCallsGap;
        break;
      case ToolCallReader::Header::kNone:
        state_ = State::kContent;
        break;
    }
    return used;
  }

  const Habits habits_;
  const std::unique_ptr<ToolCallReader> reader_;
  const MarkerSet reasoning_end_{{std::string(kEndThink)}};
  State state_ = State::kStart;
  std::string buffer_;
  size_t opening_length_ = 0;
  DeltaSink sink_;
};

MessageParser::MessageParser(ChatLayout layout, bool starts_in_reasoning)
    : impl_(std::make_unique<Impl>(layout, starts_in_reasoning)) {}
MessageParser::~MessageParser() = default;
MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser& MessageParser::operator=(MessageParser&&) noexcept = default;

void MessageParser::Push(std::string_view text, std::vector<MessageDelta>* deltas) {
  impl_->Push(text, deltas);
}

void MessageParser::Finish(bool was_cut, std::vector<MessageDelta>* deltas) {
  impl_->Finish(was_cut, deltas);
}

const ParsedMessage& MessageParser::message() const { return impl_->message(); }
bool MessageParser::is_in_reasoning() const { return impl_->is_in_reasoning(); }

}  // namespace hadal
