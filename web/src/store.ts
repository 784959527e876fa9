// Conversations in the browser's own storage. One key per conversation, so that a long list costs
// no more to save than the one that changed; what cannot be read is left out.
import { defaultSettings, type Conversation } from './types.ts'

const prefix = 'hadal.conversation.'

export function newConversation(settings = defaultSettings): Conversation {
  const now = Date.now()
  return { id: newId(), title: '', created: now, updated: now, messages: [], settings: { ...settings } }
}

// Works without a secure context, which crypto.randomUUID does not.
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function loadConversations(): Conversation[] {
  const found: Conversation[] = []
  for (let i = 0; i < localStorage.length; i++) {
    const key = localStorage.key(i)
    if (!key?.startsWith(prefix)) continue
    try {
      const value = JSON.parse(localStorage.getItem(key) ?? '')
      if (!Array.isArray(value.messages)) continue
      found.push({ ...value, settings: { ...defaultSettings, ...value.settings } })
    } catch {
      continue
    }
  }
  return found.sort((a, b) => b.updated - a.updated)
}

// False when the browser's storage is full or closed.
export function saveConversation(conversation: Conversation): boolean {
  try {
    localStorage.setItem(prefix + conversation.id, JSON.stringify(conversation))
    return true
  } catch {
    return false
  }
}

export function deleteConversation(id: string) {
  localStorage.removeItem(prefix + id)
}

export function loadPreference(name: string, fallback: string): string {
  return localStorage.getItem('hadal.' + name) ?? fallback
}

export function savePreference(name: string, value: string) {
  try {
    localStorage.setItem('hadal.' + name, value)
  } catch {
    // The preference lasts as long as the page.
  }
}

export function titleOf(conversation: Conversation): string {
  if (conversation.title) return conversation.title
  const first = conversation.messages.find((message) => message.role === 'user')?.content.trim() ?? ''
  if (!first) return 'New conversation'
  return first.length > 48 ? first.slice(0, 47) + '…' : first
}

// The conversation as Markdown, for people and other programs.
export function asMarkdown(conversation: Conversation): string {
  const parts = [`# ${titleOf(conversation)}\n`]
  if (conversation.settings.system) parts.push(`## System\n\n${conversation.settings.system}\n`)
  for (const message of conversation.messages) {
    parts.push(message.role === 'user' ? '## User\n' : '## Assistant\n')
    if (message.reasoning) parts.push(message.reasoning.replace(/^/gm, '> ') + '\n')
    if (message.content) parts.push(message.content + '\n')
    for (const call of message.toolCalls ?? [])
      parts.push('```json\n' + JSON.stringify({ name: call.name, arguments: call.arguments }) + '\n```\n')
  }
  return parts.join('\n')
}
