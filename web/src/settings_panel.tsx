// What goes with every request of a conversation. An empty field is the model's own setting.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Settings } from './types.ts'

interface Props {
  settings: Settings
  apiKey: string
  onKey: (key: string) => void
  onChange: (settings: Settings) => void
  onClose: () => void
}

interface NumberField {
  name: 'temperature' | 'topP' | 'topK' | 'minP' | 'maxTokens' | 'seed'
  label: string
  min: number
  max?: number
  step: number
}

const fields: NumberField[] = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05 },
  { name: 'topP', label: 'Top p', min: 0, max: 1, step: 0.01 },
  { name: 'topK', label: 'Top k', min: 0, step: 1 },
  { name: 'minP', label: 'Min p', min: 0, max: 1, step: 0.01 },
  { name: 'maxTokens', label: 'Most tokens', min: 1, step: 1 },
  { name: 'seed', label: 'Seed', min: 0, step: 1 },
]

export function SettingsPanel({ settings, apiKey, onKey, onChange, onClose }: Props) {
  const [key, setKey] = useState(apiKey)
  function number(field: NumberField) {
    return (event: JSX.TargetedEvent<HTMLInputElement>) => {
      const { value, valueAsNumber } = event.currentTarget
      if (value !== '' && !Number.isFinite(valueAsNumber)) return
      onChange({ ...settings, [field.name]: value === '' ? null : valueAsNumber })
    }
  }
  return (
    <aside class="settings" aria-label="Settings">
      <header>
        <h2>Settings</h2>
        <button class="icon" aria-label="Close the settings" onClick={onClose}>
          ✕
        </button>
      </header>
      <label>
        System prompt
        <textarea
          rows={5}
          value={settings.system}
          onInput={(event) => onChange({ ...settings, system: event.currentTarget.value })}
        />
      </label>
      <div class="numbers">
        {fields.map((field) => (
          <label key={field.name}>
            {field.label}
            <input
              type="number"
              min={field.min}
              max={field.max}
              step={field.step}
              placeholder="model's own"
              value={settings[field.name] ?? ''}
              onInput={number(field)}
            />
          </label>
        ))}
      </div>
      <label>
        Tools (a JSON list)
        <textarea
          rows={6}
          class="mono"
          spellcheck={false}
          placeholder='[{"type": "function", "function": {"name": …}}]'
          value={settings.tools}
          onInput={(event) => onChange({ ...settings, tools: event.currentTarget.value })}
        />
      </label>
      <label>
        API key
        <input
          type="password"
          autocomplete="off"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
          onBlur={() => onKey(key.trim())}
        />
      </label>
      <p class="hint">The key is kept in this browser. Settings count for this conversation and new ones after it.</p>
    </aside>
  )
}
