/* The C interface from C: a conversation, ids, stops, cancelling, errors. Prints what went wrong
 * and ends with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hadal.h"

#define EXPECT(condition)                                                                       \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              hadal_last_error());                                                              \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

/* The text of one kind, to the end of the answer. */
static void read_all(hadal_answer* answer, hadal_kind kind, char* text, size_t size) {
  hadal_piece piece;
  size_t used = 0;
  while (hadal_next(answer, &piece)) {
    if (piece.kind != kind) continue;
    EXPECT(used + piece.size < size);
    memcpy(text + used, piece.text, piece.size);
    used += piece.size;
  }
  text[used] = '\0';
}

static hadal_request ask_user(const hadal_message* message) {
  hadal_request request = HADAL_REQUEST_INIT;
  request.messages = message;
  request.num_messages = 1;
  request.uses_sampling = 1; /* greedy */
  return request;
}

static void answers_a_conversation(hadal_engine* engine) {
  const hadal_message message = {"user", "What is the capital of France?"};
  hadal_request request = ask_user(&message);
  hadal_answer* answer = hadal_ask(engine, &request);
  EXPECT(answer != NULL);
  char text[1000];
  read_all(answer, HADAL_CONTENT, text, sizeof text);
  EXPECT(strcmp(text, "The capital of France is Paris.") == 0);
  hadal_end end;
  hadal_answer_end(answer, &end);
  EXPECT(end.finish == HADAL_FINISH_STOP && strcmp(end.error, "") == 0);
  size_t count = 0;
  EXPECT(hadal_answer_tokens(answer, &count) != NULL);
  EXPECT(count > 0 && count == (size_t)end.completion_tokens && end.prompt_tokens > 5);
  hadal_answer_free(answer);
}

static void stops_at_a_text(hadal_engine* engine) {
  const hadal_message message = {"user", "What is the capital of France?"};
  const char* stops[] = {" of France"};
  hadal_request request = ask_user(&message);
  request.stops = stops;
  request.num_stops = 1;
  hadal_answer* answer = hadal_ask(engine, &request);
  char text[1000];
  read_all(answer, HADAL_CONTENT, text, sizeof text);
  EXPECT(strcmp(text, "The capital") == 0);
  hadal_answer_free(answer);
}

static void thinks_when_asked(hadal_engine* engine) {
  const hadal_message message = {"user", "What is 7 + 5?"};
  hadal_request request = ask_user(&message);
  request.thinking = 1;
  hadal_answer* answer = hadal_ask(engine, &request);
  char text[1000];
  read_all(answer, HADAL_REASONING, text, sizeof text);
  EXPECT(strlen(text) > 0);
  hadal_answer_free(answer);
}

static void continues_ids_and_text(hadal_engine* engine) {
  const int32_t tokens[] = {0, 300, 301, 302};
  hadal_request request = HADAL_REQUEST_INIT;
  request.tokens = tokens;
  request.num_tokens = 4;
  request.max_tokens = 5;
  request.ignore_eos = 1;
  hadal_answer* answer = hadal_ask(engine, &request);
  hadal_piece piece;
  while (hadal_next(answer, &piece)) EXPECT(piece.size > 0);
  size_t count = 0;
  hadal_answer_tokens(answer, &count);
  EXPECT(count == 5);
  hadal_end end;
  hadal_answer_end(answer, &end);
  EXPECT(end.finish == HADAL_FINISH_LENGTH && end.prompt_tokens == 4);
  hadal_answer_free(answer);

  hadal_request text_request = HADAL_REQUEST_INIT;
  text_request.prompt = "Once upon a time";
  text_request.max_tokens = 3;
  text_request.ignore_eos = 1;
  answer = hadal_ask(engine, &text_request);
  EXPECT(answer != NULL);
  while (hadal_next(answer, &piece)) continue;
  hadal_answer_free(answer);
}

static void is_cancelled(hadal_engine* engine) {
  hadal_request request = HADAL_REQUEST_INIT;
  request.prompt = "Once upon a time";
  request.ignore_eos = 1;
  hadal_answer* answer = hadal_ask(engine, &request);
  hadal_piece piece;
  EXPECT(hadal_next(answer, &piece));
  hadal_cancel(answer);
  while (hadal_next(answer, &piece)) continue;
  hadal_end end;
  hadal_answer_end(answer, &end);
  EXPECT(end.finish == HADAL_FINISH_CANCELLED);
  hadal_answer_free(answer);
  hadal_answer_free(hadal_ask(engine, &request)); /* given up unread */
}

static void tells_what_is_wrong(hadal_engine* engine) {
  hadal_options options = HADAL_OPTIONS_INIT;
  EXPECT(hadal_open(&options) == NULL && strstr(hadal_last_error(), "model_path") != NULL);
  options.model_path = "/no/such/model";
  EXPECT(hadal_open(&options) == NULL && strstr(hadal_last_error(), "/no/such/model") != NULL);
  options.struct_size = 100000;
  EXPECT(hadal_open(&options) == NULL && strstr(hadal_last_error(), "struct_size") != NULL);
  EXPECT(hadal_open(NULL) == NULL);

  hadal_request request = HADAL_REQUEST_INIT;
  EXPECT(hadal_ask(engine, &request) == NULL);
  EXPECT(strstr(hadal_last_error(), "one of messages, prompt and tokens, found 0") != NULL);
  const hadal_message message = {"user", NULL};
  request = ask_user(&message);
  EXPECT(hadal_ask(engine, &request) == NULL && strstr(hadal_last_error(), "messages[0]") != NULL);
  const int32_t negative[] = {-1};
  hadal_request ids = HADAL_REQUEST_INIT;
  ids.tokens = negative;
  ids.num_tokens = 1;
  EXPECT(hadal_ask(engine, &ids) == NULL && strstr(hadal_last_error(), "prompt[0]") != NULL);
  EXPECT(hadal_ask(NULL, &ids) == NULL);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2);
  hadal_options options = HADAL_OPTIONS_INIT;
  options.model_path = argv[1];
  options.num_threads = 1;
  hadal_engine* engine = hadal_open(&options);
  EXPECT(engine != NULL);
  answers_a_conversation(engine);
  stops_at_a_text(engine);
  thinks_when_asked(engine);
  continues_ids_and_text(engine);
  is_cancelled(engine);
  tells_what_is_wrong(engine);
  hadal_close(engine);
  hadal_close(NULL);
  printf("all of the C interface's tests passed\n");
  return 0;
}
