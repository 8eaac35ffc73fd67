/** The arithmetic of usages, without a schema: a page that adds them up loads nothing else. */

/** The counts that a provider may not report. */
const details = ["cacheWriteLong", "inputAudio", "outputAudio", "reasoning", "estimated"] as const

/** The counts that each usage has. */
const counts = ["input", "output", "cacheRead", "cacheWrite", "total"] as const

type Sum = Record<(typeof counts)[number], number> &
  Partial<Record<(typeof details)[number] | "cost", number>>

interface Usage extends Readonly<Sum> {
  readonly hostedToolCalls?: Readonly<Record<string, number>>
  readonly costSource?: "reported" | "computed" | "mixed"
}

export const zero: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }

export const sane = (usage: Usage): Usage => {
  if (isSane(usage)) return usage
  const [input, output] = [bounded(usage.input), bounded(usage.output)]
  const corrected: Sum = {
    input,
    output,
    cacheRead: bounded(usage.cacheRead),
    cacheWrite: bounded(usage.cacheWrite),
    total: bounded(usage.total >= 0 ? usage.total : input + output)
  }
  for (const name of details) {
    const claimed = usage[name]
    if (claimed !== undefined) corrected[name] = bounded(claimed)
  }
  const isCostKnown = usage.cost !== undefined && usage.cost >= 0
  return {
    ...corrected,
    ...callsIn(usage),
    ...(isCostKnown ? { cost: bounded(usage.cost), ...sourceOf(usage) } : {})
  }
}

export const add = (self: Usage, that: Usage): Usage => {
  if (self === zero) return sane(that)
  if (that === zero) return sane(self)
  const one = sane(self)
  const other = sane(that)
  const sum: Sum = { ...zero }
  for (const name of counts) sum[name] = one[name] + other[name]
  for (const name of details) {
    const known = one[name] ?? other[name]
    if (known !== undefined) sum[name] = (one[name] ?? 0) + (other[name] ?? 0)
  }
  Object.assign(sum, callsIn(one, other))
  if (one.cost !== undefined || other.cost !== undefined)
    Object.assign(sum, { cost: (one.cost ?? 0) + (other.cost ?? 0) }, sourceOf(one, other))
  return sane(sum)
}

/** The calls of the tools of the vendor in all of these usages. */
const callsIn = (...usages: ReadonlyArray<Usage>): Pick<Usage, "hostedToolCalls"> => {
  const counts = usages.flatMap(({ hostedToolCalls = {} }) => Object.entries(hostedToolCalls))
  if (counts.length === 0) return {}
  const sums = new Map<string, number>()
  for (const [tool, calls] of counts) sums.set(tool, bounded((sums.get(tool) ?? 0) + bounded(calls)))
  return { hostedToolCalls: Object.fromEntries(sums) }
}

/** The source of the cost of a sum. A cost without a source is that of a provider. */
const sourceOf = (...usages: ReadonlyArray<Usage>): Pick<Usage, "costSource"> => {
  const priced = usages.filter(({ cost }) => cost !== undefined)
  if (priced.every(({ costSource }) => costSource === undefined)) return {}
  const [first = "reported", ...others] = priced.map(({ costSource = "reported" }) => costSource)
  return { costSource: others.every((source) => source === first) ? first : "mixed" }
}

/** Whether each number can be added and encoded: `NaN` is neither above nor below a bound. */
const isSane = (usage: Usage): boolean => {
  const { cacheRead, cacheWrite, cacheWriteLong = 0, cost = 0, input, output, reasoning = 0, total } = usage
  const { estimated = 0, hostedToolCalls = {}, inputAudio = 0, outputAudio = 0 } = usage
  const counts = [input, output, cacheRead, cacheWrite, cacheWriteLong, inputAudio, outputAudio, reasoning]
  const all = [...counts, estimated, total, cost, ...Object.values(hostedToolCalls)]
  return Math.min(...all) >= 0 && Math.max(...all) <= Number.MAX_SAFE_INTEGER
}

export const bounded = (claimed: number): number =>
  claimed > 0 ? Math.min(claimed, Number.MAX_SAFE_INTEGER) : 0
