// Lines that agents write at the top of their prompt and that change from day to day or from run to
// run: a date, a time, the id of a session. Each change makes the whole prompt new to the prefix
// cache, tools included, which stand behind it. Moved behind them, only the rest is read again.
#pragma once

#include <string_view>

#include "text/chat_message.h"

namespace hadal {

enum class VolatileLines {
  kKeep,  // the prompt as it was sent
  kMove,  // from the first system message to the front of the first user message
  kDrop,  // out of the first system message, into nothing
};

// Whether a line tells a date (2025-11-30, November 30, 2025), a time of day (12:34, also with
// seconds) or an id (a UUID, or 24 and more hex digits in a row). Lines of more than 200 bytes are
// text.
bool IsVolatileLine(std::string_view line);

// Looks at the first and the last 40 lines of the first message, if that is of the system or the
// developer, and never touches lines between them: prose deep inside may speak of dates. kMove does
// nothing where there is no user message with text.
void StabilizePrompt(VolatileLines mode, Conversation* conversation);

}  // namespace hadal
