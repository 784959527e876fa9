// The server at work: read from /metrics every two seconds while the view is open.
import { useEffect, useRef, useState } from 'preact/hooks'
import { errorOf, headers } from './api.ts'
import { buckets, Metrics, quantile, seconds, type Histogram } from './metrics.ts'

interface Reading {
  time: number
  metrics: Metrics
}

const periodMs = 2000
const kept = 90 // readings in the curves

export function ServerView({ apiKey }: { apiKey: string }) {
  const [readings, setReadings] = useState<Reading[]>([])
  const [problem, setProblem] = useState('')
  const stopped = useRef(false)

  useEffect(() => {
    stopped.current = false
    async function read() {
      try {
        const reply = await fetch('/metrics', { headers: headers(apiKey) })
        if (!reply.ok) throw await errorOf(reply)
        const metrics = new Metrics(await reply.text())
        if (stopped.current) return
        setReadings((old) => [...old, { time: performance.now(), metrics }].slice(-kept))
        setProblem('')
      } catch (error) {
        if (!stopped.current) setProblem(error instanceof Error ? error.message : 'the server cannot be reached')
      }
    }
    read()
    const timer = setInterval(read, periodMs)
    return () => {
      stopped.current = true
      clearInterval(timer)
    }
  }, [apiKey])

  const last = readings.at(-1)?.metrics
  if (!last) return <div class="server">{problem ? <p class="error">{problem}</p> : <p class="hint">Reading…</p>}</div>
  const perSecond = (name: string) => rates(readings, name)
  const prompt = last.get('hadal_prompt_tokens_total')
  const hitShare = prompt > 0 ? last.get('hadal_prompt_tokens_cached_total') / prompt : 0
  return (
    <div class="server">
      {problem && <p class="error">{problem}</p>}
      <div class="tiles">
        <Tile name="Running" value={last.get('hadal_sequences_running')} />
        <Tile name="Waiting" value={last.get('hadal_sequences_waiting')} />
        <Tile name="Tokens per second" value={(perSecond('hadal_computed_tokens_total').at(-1) ?? 0).toFixed(1)} />
        <Tile name="Cache in use" value={`${(100 * last.get('hadal_cache_usage_ratio')).toFixed(0)} %`} />
        <Tile name="Prompt tokens from cache" value={`${(100 * hitShare).toFixed(0)} %`} />
        <Tile name="Preemptions" value={last.get('hadal_preemptions_total')} />
      </div>
      <div class="charts">
        <Curve title="Tokens per second" values={perSecond('hadal_computed_tokens_total')} />
        <Curve title="Sequences running" values={readings.map((one) => one.metrics.get('hadal_sequences_running'))} />
        <Curve title="Sequences waiting" values={readings.map((one) => one.metrics.get('hadal_sequences_waiting'))} />
        <Curve
          title="Cache blocks in use"
          values={readings.map((one) => one.metrics.get('hadal_cache_blocks_used'))}
          max={last.get('hadal_cache_blocks')}
        />
      </div>
      <div class="charts">
        <Bars title="Time to first token" histogram={last.histogram('hadal_time_to_first_token_seconds')} />
        <Bars title="Between tokens" histogram={last.histogram('hadal_inter_token_seconds')} />
        <Bars title="In the queue" histogram={last.histogram('hadal_queue_seconds')} />
        <Bars title="Whole answers" histogram={last.histogram('hadal_end_to_end_seconds')} />
      </div>
    </div>
  )
}

// The growth of a counter per second between readings.
export function rates(readings: Reading[], name: string): number[] {
  return readings.slice(1).map((one, i) => {
    const before = readings[i]
    const growth = one.metrics.get(name) - before.metrics.get(name)
    return Math.max(0, growth) / Math.max(0.001, (one.time - before.time) / 1000)
  })
}

function Tile({ name, value }: { name: string; value: string | number }) {
  return (
    <div class="tile">
      <span>{name}</span>
      <strong>{value}</strong>
    </div>
  )
}

function Curve({ title, values, max }: { title: string; values: number[]; max?: number }) {
  const top = Math.max(max ?? 0, ...values, 1e-9)
  const points = values.map((value, i) => `${(100 * (i + kept - values.length)) / (kept - 1)},${38 - (36 * value) / top}`)
  return (
    <figure>
      <figcaption>
        {title} <span class="hint">up to {top < 10 && top % 1 ? top.toFixed(1) : Math.round(top)}</span>
      </figcaption>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={title}>
        <polyline points={points.join(' ')} fill="none" vector-effect="non-scaling-stroke" />
      </svg>
    </figure>
  )
}

function Bars({ title, histogram }: { title: string; histogram: Histogram }) {
  const counts = buckets(histogram)
  const first = counts.findIndex((count) => count > 0)
  const end = counts.length - [...counts].reverse().findIndex((count) => count > 0)
  const shown = first < 0 ? [] : counts.slice(Math.max(0, first - 1), Math.min(counts.length, end + 1))
  const bounds = first < 0 ? [] : histogram.bounds.slice(Math.max(0, first - 1))
  const top = Math.max(1, ...shown)
  return (
    <figure>
      <figcaption>
        {title}{' '}
        <span class="hint">
          median {seconds(quantile(histogram, 0.5))}, 99 % below {seconds(quantile(histogram, 0.99))}
        </span>
      </figcaption>
      <svg viewBox={`0 0 ${Math.max(8, shown.length) * 16} 56`} role="img" aria-label={title}>
        {shown.map((count, i) => (
          <g key={i}>
            <title>{`up to ${seconds(bounds[i])}: ${count}`}</title>
            <rect x={i * 16 + 1} width="14" y={42 - (40 * count) / top} height={(40 * count) / top} />
            <text x={i * 16 + 8} y="51" text-anchor="middle">
              {Number.isFinite(bounds[i]) ? shortBound(bounds[i]) : '∞'}
            </text>
          </g>
        ))}
      </svg>
    </figure>
  )
}

function shortBound(value: number): string {
  return value < 1 ? `${+(value * 1000).toFixed(1)}ms` : `${value}s`
}
