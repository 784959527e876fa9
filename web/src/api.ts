// Asks the server that served the page, in the way of OpenAI's chat completions.
import type { AnswerStats, Message, Settings, ToolCall } from './types.ts'

export interface AnswerPart {
  content: string
  reasoning: string
  toolCalls: ToolCall[]
  finish?: string
  stats?: AnswerStats
}

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

export function headers(key: string): Record<string, string> {
  const all: Record<string, string> = { 'content-type': 'application/json' }
  if (key) all.authorization = 'Bearer ' + key
  return all
}

// The body of a request. Settings that were not made are left out: then the model's own count.
export function requestBody(messages: Message[], settings: Settings): Record<string, unknown> {
  const list: Record<string, unknown>[] = []
  if (settings.system.trim()) list.push({ role: 'system', content: settings.system })
  for (const message of messages) {
    if (message.role === 'assistant' && message.error && !message.content) continue
    list.push({ role: message.role, content: message.content })
  }
  const body: Record<string, unknown> = {
    messages: list,
    stream: true,
    stream_options: { include_usage: true },
    thinking: { type: settings.thinking ? 'enabled' : 'disabled' },
  }
  const optional: [string, number | null][] = [
    ['temperature', settings.temperature],
    ['top_p', settings.topP],
    ['top_k', settings.topK],
    ['min_p', settings.minP],
    ['max_tokens', settings.maxTokens],
    ['seed', settings.seed],
  ]
  for (const [name, value] of optional) if (value !== null) body[name] = value
  if (settings.tools.trim()) body.tools = JSON.parse(settings.tools)
  return body
}

// Lines of an event stream, joined to events. Comments keep a connection open and say nothing.
export class EventReader {
  private rest = ''

  push(text: string): string[] {
    this.rest += text
    const events: string[] = []
    for (;;) {
      const end = this.rest.search(/\r?\n\r?\n/)
      if (end < 0) return events
      const event = this.rest.slice(0, end)
      this.rest = this.rest.slice(end).replace(/^\r?\n\r?\n/, '')
      const data = event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).replace(/^ /, ''))
      if (data.length > 0) events.push(data.join('\n'))
    }
  }
}

// Adds one chunk of the stream to the answer. Throws ApiError when it is an error.
export function addChunk(part: AnswerPart, chunk: any) {
  if (chunk.error) throw new ApiError(chunk.error.message ?? 'the server reports an error', 500)
  const choice = chunk.choices?.[0]
  if (choice) {
    const delta = choice.delta ?? {}
    part.content += delta.content ?? ''
    part.reasoning += delta.reasoning_content ?? ''
    for (const call of delta.tool_calls ?? []) {
      const known = (part.toolCalls[call.index] ??= { name: '', arguments: '' })
      known.name += call.function?.name ?? ''
      known.arguments += call.function?.arguments ?? ''
    }
    if (choice.finish_reason) part.finish = choice.finish_reason
  }
  if (chunk.usage) {
    part.stats = {
      promptTokens: chunk.usage.prompt_tokens ?? 0,
      cachedTokens: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0,
      completionTokens: chunk.usage.completion_tokens ?? 0,
      firstTokenMs: 0,
      totalMs: 0,
    }
  }
}

export async function errorOf(reply: Response): Promise<ApiError> {
  const text = await reply.text()
  let message = text.slice(0, 500) || reply.statusText
  try {
    message = JSON.parse(text).error?.message ?? message
  } catch {
    // Not JSON: shown as it is.
  }
  const wait = reply.headers.get('retry-after')
  if (reply.status === 429 && wait) message += ` (try again in ${wait} s)`
  return new ApiError(message, reply.status)
}

// Streams an answer; `onPart` gets the whole of it so far after each read.
export async function ask(
  body: Record<string, unknown>,
  key: string,
  signal: AbortSignal,
  onPart: (part: AnswerPart) => void,
): Promise<AnswerPart> {
  const start = performance.now()
  let firstTokenMs = 0
  const part: AnswerPart = { content: '', reasoning: '', toolCalls: [] }
  const reply = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: headers(key),
    body: JSON.stringify(body),
    signal,
  })
  if (!reply.ok || !reply.body) throw await errorOf(reply)
  const reader = reply.body.getReader()
  const decoder = new TextDecoder()
  const events = new EventReader()
  for (;;) {
    const { value, done } = await reader.read()
    for (const event of events.push(done ? decoder.decode() : decoder.decode(value, { stream: true }))) {
      if (event === '[DONE]') continue
      addChunk(part, JSON.parse(event))
      if (!firstTokenMs && (part.content || part.reasoning || part.toolCalls.length))
        firstTokenMs = performance.now() - start
    }
    if (part.stats) {
      part.stats.firstTokenMs = firstTokenMs
      part.stats.totalMs = performance.now() - start
    }
    onPart(part)
    if (done) break
  }
  if (!part.finish) throw new ApiError('the stream ended before the answer did', 0)
  return part
}

export async function modelName(key: string): Promise<string> {
  const reply = await fetch('/v1/models', { headers: headers(key) })
  if (!reply.ok) throw await errorOf(reply)
  return (await reply.json()).data?.[0]?.id ?? ''
}
