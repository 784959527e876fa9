/* hadal for programs in C, and for those that call C: a model is opened, asked, and its answer read
 * piece by piece while it is made.
 *
 *   hadal_options options = HADAL_OPTIONS_INIT;
 *   options.model_path = "/srv/models/DeepSeek-V2-Lite-Chat";
 *   hadal_engine* engine = hadal_open(&options);
 *   if (engine == NULL) fprintf(stderr, "%s\n", hadal_last_error());
 *
 *   hadal_message message = {"user", "What is the capital of France?"};
 *   hadal_request request = HADAL_REQUEST_INIT;
 *   request.messages = &message;
 *   request.num_messages = 1;
 *   hadal_answer* answer = hadal_ask(engine, &request);
 *   hadal_piece piece;
 *   while (hadal_next(answer, &piece)) fwrite(piece.text, 1, piece.size, stdout);
 *   hadal_answer_free(answer);
 *   hadal_close(engine);
 *
 * Text is UTF-8. An engine may be asked from any thread, also from several at a time; an answer is
 * read by one thread. Functions that return a pointer return NULL on failure, and
 * hadal_last_error() tells why, for the calling thread. */
#ifndef HADAL_H_
#define HADAL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): names as C has them */

typedef struct hadal_engine hadal_engine;
typedef struct hadal_answer hadal_answer;

/* Of the structures below `struct_size` says which version the caller was compiled with; the INIT
 * macros set it. Fields may be added at their ends. */
typedef struct hadal_options {
  size_t struct_size;
  const char* model_path; /* a folder or a file */
  int num_threads;        /* 0: all usable cores */
  int64_t cache_tokens;   /* room of the cache; 0: by the model's context and the free memory */
  const char* cache_dir;  /* NULL: prompts are not kept on disk */
} hadal_options;

#define HADAL_OPTIONS_INIT \
  { sizeof(hadal_options), NULL, 0, 0, NULL }

typedef struct hadal_message {
  const char* role; /* "system", "user", "assistant", "tool" */
  const char* content;
} hadal_message;

/* The prompt is one of three: a conversation, text to be continued, or token ids. */
typedef struct hadal_request {
  size_t struct_size;
  const hadal_message* messages;
  size_t num_messages;
  const char* prompt;
  const int32_t* tokens;
  size_t num_tokens;

  int max_tokens;    /* -1: until the context ends */
  int uses_sampling; /* 0: the model's own settings, and the next five do not count */
  float temperature, top_p, min_p;
  int top_k;
  int has_seed; /* 0: one is drawn */
  uint64_t seed;
  int thinking;             /* 1: reason before the answer, where the model's layout knows it */
  const char* const* stops; /* texts that end the answer and are not part of it */
  size_t num_stops;
  int ignore_eos;
} hadal_request;

#define HADAL_REQUEST_INIT \
  { sizeof(hadal_request), NULL, 0, NULL, NULL, 0, -1, 0, 0.0f, 1.0f, 0.0f, 0, 0, 0, 0, NULL, 0, 0 }

typedef enum hadal_kind {
  HADAL_CONTENT = 0,
  HADAL_REASONING = 1,
  HADAL_TOOL_NAME = 2,      /* begins a call */
  HADAL_TOOL_ARGUMENTS = 3, /* JSON text, in pieces */
} hadal_kind;

/* Lives until the next call for the same answer. The text does not end with a zero. */
typedef struct hadal_piece {
  hadal_kind kind;
  int tool_call; /* index of the call, of the last two kinds */
  const char* text;
  size_t size;
} hadal_piece;

typedef enum hadal_finish {
  HADAL_FINISH_NONE = 0, /* not ended yet */
  HADAL_FINISH_STOP = 1,
  HADAL_FINISH_LENGTH = 2,
  HADAL_FINISH_TOOL_CALLS = 3,
  HADAL_FINISH_ERROR = 4,
  HADAL_FINISH_CANCELLED = 5,
} hadal_finish;

typedef struct hadal_end {
  hadal_finish finish;
  int prompt_tokens, cached_tokens, completion_tokens;
  const char* error; /* of HADAL_FINISH_ERROR, else empty; lives as long as the answer */
} hadal_end;

/* Loads a model. */
hadal_engine* hadal_open(const hadal_options* options);

/* Ends answers that are on their way; they must be freed before, or are not read any more. NULL is
 * taken. */
void hadal_close(hadal_engine* engine);

/* Begins an answer. The engine copies what it needs of the request. */
hadal_answer* hadal_ask(hadal_engine* engine, const hadal_request* request);

/* Waits for the next piece of text. 0 when the answer has ended. A model without a tokenizer gives
 * no text: then the ids are read at the end. */
int hadal_next(hadal_answer* answer, hadal_piece* piece);

/* How the answer ended; HADAL_FINISH_NONE before hadal_next() returned 0. */
void hadal_answer_end(const hadal_answer* answer, hadal_end* end);

/* The ids of the answer so far. They live until the next hadal_next(). */
const int32_t* hadal_answer_tokens(const hadal_answer* answer, size_t* count);

/* Asks the engine to end the answer; hadal_next() still gives what was made before. Any thread. */
void hadal_cancel(hadal_answer* answer);

/* Cancels the answer if it has not ended, and frees it. NULL is taken. */
void hadal_answer_free(hadal_answer* answer);

/* Why the last call of this thread failed; empty when none has. Lives until the next failure. */
const char* hadal_last_error(void);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* HADAL_H_ */
