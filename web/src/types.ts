// What a conversation is made of. Kept in the browser as JSON, so plain data only.

export interface ToolCall {
  name: string
  arguments: string
}

export interface Message {
  role: 'user' | 'assistant'
  content: string
  reasoning?: string
  toolCalls?: ToolCall[]
  finish?: string // of an answer: stop, length, tool_calls, stopped (by the reader), error
  error?: string
  stats?: AnswerStats
}

export interface AnswerStats {
  promptTokens: number
  cachedTokens: number
  completionTokens: number
  firstTokenMs: number
  totalMs: number
}

export interface Settings {
  system: string
  thinking: boolean
  temperature: number | null // null: the model's own
  topP: number | null
  topK: number | null
  minP: number | null
  maxTokens: number | null
  seed: number | null
  tools: string // JSON list of tool definitions, or empty
}

export interface Conversation {
  id: string
  title: string
  created: number
  updated: number
  messages: Message[]
  settings: Settings
}

export const defaultSettings: Settings = {
  system: '',
  thinking: false,
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  maxTokens: null,
  seed: null,
  tools: '',
}
