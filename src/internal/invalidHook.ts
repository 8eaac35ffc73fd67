/**
 * Refuses values that are no hooks, since runs would silently never call a hook with a misspelt point.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Hook from "../Hook.ts"
import * as NearestName from "./nearestName.ts"

const names = Object.keys(Hook.points)

/** The fault of a value that is no hook, and what to write instead. `undefined` for a hook. */
export const of = (hook: unknown): string | undefined => {
  if (!Predicate.isObject(hook))
    return `expected a hook made by Hook.beforeTool(…) or its like, got ${typeof hook}`
  const { name, point, run } = hook
  if (typeof point !== "string" || !names.includes(point)) return noPoint(point)
  if (name !== undefined && typeof name !== "string")
    return `expected \`name\` to be a string, got ${typeof name}`
  return typeof run === "function" ? undefined : `expected \`run\` to be a function, got ${typeof run}`
}

/** Dies with the fault of a value that is no hook. */
export const refuse = (hook: unknown): Effect.Effect<void> => {
  const fault = of(hook)
  return fault === undefined ? Effect.void : Effect.die(new TypeError(`Invalid hook: ${fault}`))
}

const noPoint = (point: unknown): string => {
  if (typeof point !== "string") return "`point` is missing. Make the hook by Hook.beforeTool(…) or its like"
  const nearest = NearestName.of(point, names)
  const advice = nearest === undefined ? `Points: ${names.join(", ")}` : `Did you mean ${nearest}?`
  return `there is no point ${JSON.stringify(point.slice(0, 100))}. ${advice}`
}
