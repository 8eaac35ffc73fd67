/** The last lines of a run on stderr: the tokens, the cost and the session, the bounds that it has passed, and the calls that were refused. */
import * as Option from "effect/Option"
import type { Outcome } from "../agent/Outcome.ts"
import type { Settings } from "../settings/Settings.ts"

/** The tokens, the cost and the session of a run, `undefined` if it has none of them. */
export const line = ({ end }: Outcome, sessionId: string | undefined): string | undefined => {
  const usage = end?.usage
  const parts = [
    ...(usage === undefined || usage.total === 0
      ? []
      : [`${countOf(usage.input)} tokens read, ${countOf(usage.output)} written`]),
    ...(usage?.cost === undefined || usage.cost === 0 ? [] : [costOf(usage.cost)]),
    ...(sessionId === undefined ? [] : [`session ${sessionId.slice(0, 8)}`])
  ]
  return parts.length === 0 ? undefined : parts.join(" · ")
}

/** A sentence for each bound that the last model call of a run has passed: a bound only stops the next one. */
export const passed = (
  { end }: Outcome,
  { maxCost, maxTokensTotal }: Pick<Settings, "maxCost" | "maxTokensTotal">
): ReadonlyArray<string> => {
  const { cost = 0, total = 0 } = end?.usage ?? {}
  const over = (bound: Option.Option<number>, value: number, text: string) =>
    Option.exists(bound, (most) => value > most)
      ? [`The run ${text}: the bound is checked before each model call, and the last one has passed it.`]
      : []
  return [
    ...over(maxCost, cost, `cost ${costOf(cost)}, more than --max-cost`),
    ...over(maxTokensTotal, total, `took ${total} tokens, more than --max-tokens-total`)
  ]
}

/** The number of calls that were refused, with the advice on them; `undefined` if none were, or there is no advice. */
export const refused = ({ refused }: Outcome, advice: string): string | undefined => {
  const count = refused.length
  return count === 0 || advice === ""
    ? undefined
    : `${count} ${count === 1 ? "call was" : "calls were"} refused. ${advice}`
}

/** `950`, `12.3k`, `1.2M`. */
const countOf = (tokens: number): string => {
  if (tokens < 1_000) return String(tokens)
  return tokens < 1_000_000
    ? `${Number((tokens / 1e3).toFixed(1))}k`
    : `${Number((tokens / 1e6).toFixed(1))}M`
}

const costOf = (usd: number): string => `$${usd.toFixed(usd < 1 ? 4 : 2)}`
