// One message: text as Markdown, thinking that folds, tool calls, and what can be done with it.
import { useMemo, useState } from 'preact/hooks'
import { renderMarkdown } from './markdown.ts'
import type { AnswerStats, Message, ToolCall } from './types.ts'

interface Props {
  message: Message
  isStreaming: boolean
  canChange: boolean
  onRegenerate: () => void
  onEdit: (text: string) => void
}

export function MessageView(props: Props) {
  return props.message.role === 'user' ? <Question {...props} /> : <Answer {...props} />
}

function Question({ message, canChange, onEdit }: Props) {
  const [draft, setDraft] = useState<string | null>(null)
  if (draft !== null) {
    return (
      <article class="message user editing">
        <textarea
          autofocus
          aria-label="Edit the message"
          rows={Math.min(12, draft.split('\n').length + 1)}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') setDraft(null)
          }}
        />
        <div class="actions">
          <button class="primary" disabled={!draft.trim() || !canChange} onClick={() => (onEdit(draft), setDraft(null))}>
            Send
          </button>
          <button onClick={() => setDraft(null)}>Cancel</button>
        </div>
      </article>
    )
  }
  return (
    <article class="message user">
      <div class="plain">{message.content}</div>
      <div class="actions">
        <CopyButton text={message.content} />
        <button disabled={!canChange} onClick={() => setDraft(message.content)}>
          Edit
        </button>
      </div>
    </article>
  )
}

function Answer({ message, isStreaming, canChange, onRegenerate }: Props) {
  const html = useMemo(() => renderMarkdown(message.content), [message.content])
  return (
    <article class="message assistant" aria-busy={isStreaming}>
      {message.reasoning && <Thinking text={message.reasoning} isOpen={isStreaming && !message.content} />}
      {message.content && (
        <div class="markdown" onClick={copyCode} dangerouslySetInnerHTML={{ __html: html }} />
      )}
      {(message.toolCalls ?? []).map((call, i) => (
        <CallView key={i} call={call} />
      ))}
      {isStreaming && <span class="cursor" aria-label="The answer is being written" />}
      {message.error && (
        <p class="error" role="alert">
          {message.error}
        </p>
      )}
      {!isStreaming && (
        <div class="actions">
          <CopyButton text={message.content} />
          <button disabled={!canChange} onClick={onRegenerate}>
            Regenerate
          </button>
          {message.finish === 'length' && <span class="hint">cut off at the limit of tokens</span>}
          {message.finish === 'stopped' && <span class="hint">stopped</span>}
          {message.stats && <span class="hint">{statsText(message.stats)}</span>}
        </div>
      )}
    </article>
  )
}

// Open while the model thinks, folded when the answer begins; a click decides otherwise.
function Thinking({ text, isOpen }: { text: string; isOpen: boolean }) {
  const [chosen, setChosen] = useState<boolean | null>(null)
  const open = chosen ?? isOpen
  return (
    <div class="thinking">
      <button aria-expanded={open} onClick={() => setChosen(!open)}>
        <span class="arrow">{open ? '▾' : '▸'}</span> {isOpen ? 'Thinking…' : 'Thoughts'}
      </button>
      {open && <div class="plain">{text}</div>}
    </div>
  )
}

function CallView({ call }: { call: ToolCall }) {
  let text = call.arguments
  try {
    text = JSON.stringify(JSON.parse(call.arguments), null, 2)
  } catch {
    // Not complete yet.
  }
  return (
    <details class="call" open>
      <summary>
        Calls <code>{call.name}</code>
      </summary>
      <pre>
        <code>{text}</code>
      </pre>
    </details>
  )
}

function statsText(stats: AnswerStats): string {
  const decodeMs = stats.totalMs - stats.firstTokenMs
  const speed = stats.completionTokens > 1 && decodeMs > 0 ? ((stats.completionTokens - 1) * 1000) / decodeMs : 0
  const cached = stats.cachedTokens > 0 ? ` (${stats.cachedTokens} cached)` : ''
  return (
    `${stats.promptTokens}${cached} → ${stats.completionTokens} tokens · first after ${Math.round(stats.firstTokenMs)} ms` +
    (speed > 0 ? ` · ${speed.toFixed(1)} tokens/s` : '')
  )
}

function CopyButton({ text }: { text: string }) {
  const [done, setDone] = useState(false)
  return (
    <button
      onClick={async () => {
        setDone(await copyText(text))
        setTimeout(() => setDone(false), 1500)
      }}
    >
      {done ? 'Copied' : 'Copy'}
    </button>
  )
}

async function copyCode(event: MouseEvent) {
  const button = (event.target as HTMLElement).closest('button.copy')
  if (!button) return
  const code = button.closest('.code')?.querySelector('pre')?.textContent ?? ''
  button.textContent = (await copyText(code)) ? 'Copied' : 'Copy'
  setTimeout(() => (button.textContent = 'Copy'), 1500)
}

// The clipboard's interface is there on https and localhost only; elsewhere the old way.
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    return done
  }
}
