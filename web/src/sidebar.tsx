// The list of conversations, and the way to the view of the server.
import { useState } from 'preact/hooks'
import type { View } from './app.tsx'
import { titleOf } from './store.ts'
import type { Conversation } from './types.ts'

interface Props {
  conversations: Conversation[]
  currentId: string
  view: View
  isOpen: boolean
  runningId?: string
  theme: string
  onTheme: (theme: string) => void
  onNew: () => void
  onSelect: (id: string) => void
  onDelete: (id: string) => void
  onRename: (id: string, title: string) => void
  onServer: () => void
  onClose: () => void
}

export function Sidebar(props: Props) {
  const [renamed, setRenamed] = useState('')
  const [filter, setFilter] = useState('')
  const shown = props.conversations.filter((one) => titleOf(one).toLowerCase().includes(filter.toLowerCase()))
  return (
    <>
      {props.isOpen && <div class="shade" onClick={props.onClose} />}
      <nav class={props.isOpen ? 'sidebar open' : 'sidebar'} aria-label="Conversations">
        <div class="brand">
          <img src="/icon.svg" alt="" width="26" height="26" />
          <strong>hadal</strong>
        </div>
        <button class="primary" onClick={props.onNew} title="New conversation (Ctrl+Shift+O)">
          New conversation
        </button>
        {props.conversations.length > 6 && (
          <input
            type="search"
            placeholder="Search"
            aria-label="Search conversations"
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        )}
        <ul>
          {shown.map((one) => (
            <li key={one.id} class={one.id === props.currentId && props.view === 'chat' ? 'current' : ''}>
              {renamed === one.id ? (
                <input
                  autofocus
                  aria-label="Title"
                  value={titleOf(one)}
                  onBlur={(event) => (props.onRename(one.id, event.currentTarget.value.trim()), setRenamed(''))}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter') event.currentTarget.blur()
                    if (event.key === 'Escape') setRenamed('')
                  }}
                />
              ) : (
                <>
                  <button
                    class="title"
                    aria-current={one.id === props.currentId}
                    onClick={() => props.onSelect(one.id)}
                    onDblClick={() => setRenamed(one.id)}
                  >
                    {one.id === props.runningId && <span class="dot" aria-label="answering" />}
                    {titleOf(one)}
                  </button>
                  <button class="icon small" aria-label={`Rename ${titleOf(one)}`} onClick={() => setRenamed(one.id)}>
                    ✎
                  </button>
                  <button class="icon small" aria-label={`Delete ${titleOf(one)}`} onClick={() => props.onDelete(one.id)}>
                    ✕
                  </button>
                </>
              )}
            </li>
          ))}
        </ul>
        <div class="foot">
          <button class={props.view === 'server' ? 'current' : ''} onClick={props.onServer}>
            Server
          </button>
          <select
            aria-label="Colours"
            value={props.theme}
            onChange={(event) => props.onTheme(event.currentTarget.value)}
          >
            <option value="system">System colours</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </div>
      </nav>
    </>
  )
}
