// The page: which conversation is shown, what is being asked, and the keys.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ask, ApiError, modelName, requestBody, type AnswerPart } from './api.ts'
import { Chat } from './chat.tsx'
import { ServerView } from './server_view.tsx'
import { SettingsPanel } from './settings_panel.tsx'
import { Sidebar } from './sidebar.tsx'
import {
  asMarkdown,
  deleteConversation,
  loadConversations,
  loadPreference,
  newConversation,
  saveConversation,
  savePreference,
  titleOf,
} from './store.ts'
import type { Conversation, Message, Settings } from './types.ts'

export type View = 'chat' | 'server'

// A request on its way, and whose answer it will be.
interface Running {
  conversationId: string
  abort: AbortController
}

export function App() {
  const [conversations, setConversations] = useState<Conversation[]>(() => {
    const kept = loadConversations()
    return kept.length > 0 ? kept : [newConversation()]
  })
  const [currentId, setCurrentId] = useState(conversations[0].id)
  const [view, setView] = useState<View>('chat')
  const [running, setRunning] = useState<Running | null>(null)
  const [notice, setNotice] = useState('')
  const [showsSettings, setShowsSettings] = useState(false)
  const [showsSidebar, setShowsSidebar] = useState(false)
  const [theme, setTheme] = useState(() => loadPreference('theme', 'system'))
  const [key, setKey] = useState(() => loadPreference('key', ''))
  const [model, setModel] = useState('')
  const latest = useRef(conversations)
  latest.current = conversations
  const current = conversations.find((one) => one.id === currentId) ?? conversations[0]

  // Before the browser paints: the page is never seen in the colours that were not chosen.
  useLayoutEffect(() => {
    if (theme === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = theme
    savePreference('theme', theme)
  }, [theme])

  useEffect(() => {
    savePreference('key', key)
    modelName(key).then(
      (name) => (setModel(name), setNotice('')),
      (error) => setNotice(error instanceof ApiError ? error.message : 'The server cannot be reached.'),
    )
  }, [key])

  function change(id: string, edit: (conversation: Conversation) => Conversation, save = true) {
    const next = latest.current.map((one) => (one.id === id ? { ...edit(one), updated: Date.now() } : one))
    latest.current = next
    setConversations(next)
    const changed = next.find((one) => one.id === id)
    if (save && changed && !saveConversation(changed))
      setNotice("The browser's storage is full: this conversation is not kept.")
  }

  // Asks for the answer to `messages`, which replaces what followed them.
  async function answer(id: string, messages: Message[]) {
    const conversation = latest.current.find((one) => one.id === id)
    if (!conversation || running) return
    let body: Record<string, unknown>
    try {
      body = requestBody(messages, conversation.settings)
    } catch {
      setNotice('Tools: a JSON list is expected.')
      setShowsSettings(true)
      return
    }
    const abort = new AbortController()
    setRunning({ conversationId: id, abort })
    setNotice('')
    const show = (part: Partial<AnswerPart>, more: Partial<Message> = {}, save = false) =>
      change(
        id,
        (one) => ({ ...one, messages: [...messages, { role: 'assistant', content: '', ...part, ...more }] }),
        save,
      )
    let last: AnswerPart = { content: '', reasoning: '', toolCalls: [] }
    show({})
    try {
      last = await ask(body, key, abort.signal, (part) => {
        last = { ...part, toolCalls: part.toolCalls.map((call) => ({ ...call })) }
        show(last)
      })
      show(last, {}, true)
    } catch (error) {
      const stopped = abort.signal.aborted
      show(last, stopped ? { finish: 'stopped' } : { finish: 'error', error: messageOf(error) }, true)
    } finally {
      setRunning(null)
    }
  }

  function send(text: string) {
    answer(current.id, [...current.messages, { role: 'user', content: text }])
  }
  function regenerate(index: number) {
    answer(current.id, current.messages.slice(0, index))
  }
  function edit(index: number, text: string) {
    answer(current.id, [...current.messages.slice(0, index), { role: 'user', content: text }])
  }

  function startNew() {
    const empty = latest.current.find((one) => one.messages.length === 0)
    const fresh = empty ?? newConversation(current.settings)
    if (!empty) setConversations((latest.current = [fresh, ...latest.current]))
    setCurrentId(fresh.id)
    setView('chat')
    setShowsSidebar(false)
  }
  function remove(id: string) {
    if (running?.conversationId === id) running.abort.abort()
    deleteConversation(id)
    const rest = latest.current.filter((one) => one.id !== id)
    const next = rest.length > 0 ? rest : [newConversation()]
    setConversations((latest.current = next))
    if (id === currentId) setCurrentId(next[0].id)
  }
  function select(id: string) {
    setCurrentId(id)
    setView('chat')
    setShowsSidebar(false)
  }
  function download(kind: 'markdown' | 'json') {
    const text = kind === 'json' ? JSON.stringify(current, null, 2) : asMarkdown(current)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
    link.download = `${titleOf(current).replace(/[^\p{L}\p{N}]+/gu, '-')}.${kind === 'json' ? 'json' : 'md'}`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  }

  const actions = useRef({ startNew, running })
  actions.current = { startNew, running }
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') {
        actions.current.running?.abort.abort()
        setShowsSettings(false)
        setShowsSidebar(false)
      }
      if (!(event.ctrlKey || event.metaKey) || !event.shiftKey) return
      if (event.code === 'KeyO') actions.current.startNew()
      else if (event.code === 'KeyS') setShowsSettings((shown) => !shown)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])

  return (
    <div class="app">
      <Sidebar
        conversations={conversations}
        currentId={current.id}
        view={view}
        isOpen={showsSidebar}
        runningId={running?.conversationId}
        theme={theme}
        onTheme={setTheme}
        onNew={startNew}
        onSelect={select}
        onDelete={remove}
        onRename={(id, title) => change(id, (one) => ({ ...one, title }))}
        onServer={() => (setView('server'), setShowsSidebar(false))}
        onClose={() => setShowsSidebar(false)}
      />
      <main>
        <header>
          <button class="icon only-narrow" aria-label="Conversations" onClick={() => setShowsSidebar(true)}>
            ☰
          </button>
          <h1>{view === 'server' ? 'Server' : titleOf(current)}</h1>
          <span class="model" title="Model">
            {model}
          </span>
          {view === 'chat' && (
            <>
              <select
                class="export"
                aria-label="Export"
                value=""
                onChange={(event) => {
                  download(event.currentTarget.value as 'markdown' | 'json')
                  event.currentTarget.value = ''
                }}
              >
                <option value="" disabled hidden>
                  Export
                </option>
                <option value="markdown">Markdown</option>
                <option value="json">JSON</option>
              </select>
              <button
                class="icon"
                aria-label="Settings"
                aria-expanded={showsSettings}
                title="Settings (Ctrl+Shift+S)"
                onClick={() => setShowsSettings(!showsSettings)}
              >
                ⚙
              </button>
            </>
          )}
        </header>
        {notice && (
          <p class="notice" role="alert">
            {notice}
          </p>
        )}
        {view === 'server' ? (
          <ServerView apiKey={key} />
        ) : (
          <Chat
            key={current.id}
            conversation={current}
            isRunning={running?.conversationId === current.id}
            isBusy={running !== null}
            onSend={send}
            onStop={() => running?.abort.abort()}
            onRegenerate={regenerate}
            onEdit={edit}
            onThinking={(thinking) => change(current.id, (one) => ({ ...one, settings: { ...one.settings, thinking } }))}
          />
        )}
      </main>
      {showsSettings && view === 'chat' && (
        <SettingsPanel
          settings={current.settings}
          apiKey={key}
          onKey={setKey}
          onChange={(settings: Settings) => change(current.id, (one) => ({ ...one, settings }))}
          onClose={() => setShowsSettings(false)}
        />
      )}
    </div>
  )
}

function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.message
  return 'The connection to the server broke off.'
}
