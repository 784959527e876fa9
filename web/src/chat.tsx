// One conversation: its messages, and where the next one is written.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { MessageView } from './message_view.tsx'
import type { Conversation } from './types.ts'

interface Props {
  conversation: Conversation
  isRunning: boolean // an answer to this conversation is on its way
  isBusy: boolean // an answer to any is
  onSend: (text: string) => void
  onStop: () => void
  onRegenerate: (index: number) => void
  onEdit: (index: number, text: string) => void
  onThinking: (thinking: boolean) => void
}

export function Chat(props: Props) {
  const [text, setText] = useState('')
  const list = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLTextAreaElement>(null)
  const follows = useRef(true) // the end of the list is in sight, and stays so
  const { messages, settings } = props.conversation

  useLayoutEffect(() => {
    if (follows.current && list.current) list.current.scrollTop = list.current.scrollHeight
  }, [messages])
  useEffect(() => {
    if (matchMedia('(min-width: 721px)').matches) input.current?.focus()
  }, [])

  function submit() {
    if (!text.trim() || props.isBusy) return
    follows.current = true
    props.onSend(text)
    setText('')
  }

  return (
    <>
      <div
        class="messages"
        ref={list}
        role="log"
        aria-live="off"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget
          follows.current = scrollHeight - scrollTop - clientHeight < 60
        }}
      >
        {messages.length === 0 && (
          <p class="empty">
            Ask something. <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> begins a line, <kbd>Esc</kbd> stops.
          </p>
        )}
        {messages.map((message, i) => (
          <MessageView
            key={i}
            message={message}
            isStreaming={props.isRunning && i === messages.length - 1}
            canChange={!props.isBusy}
            onRegenerate={() => props.onRegenerate(i)}
            onEdit={(changed) => props.onEdit(i, changed)}
          />
        ))}
      </div>
      <form
        class="composer"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        <textarea
          ref={input}
          rows={Math.min(10, Math.max(1, text.split('\n').length))}
          placeholder="Message"
          aria-label="Message"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            submit()
          }}
        />
        <div class="composer-bar">
          <label class="toggle">
            <input
              type="checkbox"
              checked={settings.thinking}
              onChange={(event) => props.onThinking(event.currentTarget.checked)}
            />
            Think first
          </label>
          {props.isRunning ? (
            <button type="button" class="primary stop" onClick={props.onStop}>
              Stop
            </button>
          ) : (
            <button type="submit" class="primary" disabled={!text.trim() || props.isBusy}>
              Send
            </button>
          )}
        </div>
      </form>
    </>
  )
}
