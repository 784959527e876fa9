// Reads Prometheus' text format, as far as the view of the server needs it.

export interface Histogram {
  bounds: number[] // the last is Infinity
  cumulative: number[]
  sum: number
}

export class Metrics {
  private values = new Map<string, number>()

  constructor(text: string) {
    for (const line of text.split('\n')) {
      if (!line || line.startsWith('#')) continue
      const end = line.lastIndexOf(' ')
      this.values.set(line.slice(0, end), Number(line.slice(end + 1)))
    }
  }

  // A value by its full name, labels included, or the sum over all labels.
  get(name: string): number {
    const exact = this.values.get(name)
    if (exact !== undefined) return exact
    let sum = 0
    for (const [key, value] of this.values) if (key.startsWith(name + '{')) sum += value
    return sum
  }

  histogram(name: string): Histogram {
    const entries: [number, number][] = []
    for (const [key, value] of this.values) {
      if (!key.startsWith(name + '_bucket{')) continue
      const bound = /le="([^"]+)"/.exec(key)?.[1] ?? ''
      entries.push([bound === '+Inf' ? Infinity : Number(bound), value])
    }
    entries.sort((a, b) => a[0] - b[0])
    return {
      bounds: entries.map((entry) => entry[0]),
      cumulative: entries.map((entry) => entry[1]),
      sum: this.get(name + '_sum'),
    }
  }
}

// The value below which a share of all values lies, linear within a bucket. NaN without values.
export function quantile(histogram: Histogram, share: number): number {
  const total = histogram.cumulative.at(-1) ?? 0
  if (total === 0) return NaN
  const rank = share * total
  const i = histogram.cumulative.findIndex((count) => count >= rank)
  const low = i > 0 ? histogram.bounds[i - 1] : 0
  const high = histogram.bounds[i]
  if (!Number.isFinite(high)) return low
  const before = i > 0 ? histogram.cumulative[i - 1] : 0
  return low + ((rank - before) / Math.max(1, histogram.cumulative[i] - before)) * (high - low)
}

// Counts per bucket since an earlier reading, or since the server's start.
export function buckets(now: Histogram, before?: Histogram): number[] {
  return now.cumulative.map((count, i) => {
    const own = count - (i > 0 ? now.cumulative[i - 1] : 0)
    if (!before || before.cumulative.length !== now.cumulative.length) return own
    return own - (before.cumulative[i] - (i > 0 ? before.cumulative[i - 1] : 0))
  })
}

export function seconds(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`
  return `${value.toFixed(value < 10 ? 1 : 0)} s`
}
