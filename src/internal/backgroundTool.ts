/**
 * The tool by which the model lists, reads, waits for and cancels the calls that it has in the background.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Background, type BackgroundCall, contentOf, stateOf } from "./background.ts"
import { Outer, type Run } from "./run.ts"
import * as Tool from "../Tool.ts"

const params = () =>
  Schema.Struct({
    action: Schema.Literals(["list", "read", "wait", "cancel"]).annotate({
      description:
        "list: their states. read: the progress so far, or the result. wait: until they end, then read. cancel: end them"
    }),
    calls: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
      description:
        'Their handles, such as ["bg_1"]. Default: all that have not ended or whose end you have not read'
    }),
    until: Schema.optionalKey(Schema.Literals(["any", "all"])).annotate({
      description: "For wait: until one of them ends, as by default, or all"
    }),
    seconds: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 600 }))).annotate(
      { description: "For wait: the longest time, at most 600. Default: 60" }
    )
  })

type Params = ReturnType<typeof params>["Type"]

const made = new Map<string, Tool.Runnable>()

/** Returns the tool for requests with these tools, under a name that none of them has. */
export const toolFor = (tools: ReadonlyMap<string, Tool.Any>): Tool.Runnable => {
  let name = "background_calls"
  for (let number = 2; tools.has(name); number++) name = `background_calls_${number}`
  const tool = made.get(name) ?? make(name)
  made.set(name, tool)
  return tool
}

const make = (name: string): Tool.Runnable =>
  Tool.make({
    name,
    label: "Background calls",
    effect: "pure",
    timeout: "Infinity",
    description:
      "Lists, reads, waits for and cancels the tool calls that run in the background. A message reports the end of each call without it.",
    params: params(),
    execute: (params) => Effect.flatMap(Outer, (run) => act(run, params))
  })

const act = Effect.fnUntraced(function* (
  run: Run | undefined,
  params: Params
): Effect.fn.Return<Tool.ToolOutput> {
  const background = run?.background
  const known = background?.calls.filter(({ isInBackground }) => isInBackground) ?? []
  if (run === undefined || background === undefined || known.length === 0)
    return Tool.output("No call runs in the background.")
  const named = known.filter(({ handle }) => params.calls?.includes(handle))
  const strange = params.calls?.find((handle) => !known.some((call) => call.handle === handle))
  if (strange !== undefined)
    return Tool.failure(
      `No background call is named ${JSON.stringify(strange.slice(0, 100))}. Their names are: ${known.map(({ handle }) => handle).join(", ")}.`
    )
  const open = new Set([...background.atWork, ...background.unread])
  const chosen = params.calls === undefined ? known.filter((call) => open.has(call)) : named
  if (params.action === "wait") yield* wait(run, chosen, params)
  if (params.action === "cancel") yield* cancel(chosen)
  return params.action === "list" ? listed(run, known) : read(run, chosen)
})

/** Waits until calls end, for at most `seconds`, or until a message of the user comes. */
const wait = (run: Run, calls: ReadonlyArray<BackgroundCall>, { seconds = 60, until = "any" }: Params) => {
  const ends = calls.map(({ ended }) => ended.await)
  if (ends.length === 0) return Effect.void
  const ended = until === "all" ? Effect.all(ends, { discard: true }) : Effect.raceAllFirst(ends)
  return Effect.timeoutOption(Effect.raceFirst(ended, run.queues.arrival.await), seconds * 1000)
}

const cancel = (calls: ReadonlyArray<BackgroundCall>) =>
  Effect.forEach(calls, ({ ended, fibers, outcome }) =>
    outcome === undefined ? Effect.andThen(fibers.interrupt, ended.await) : Effect.void
  )

const listed = ({ elapsed }: Run, calls: Background["calls"]): Tool.ToolOutput =>
  Tool.output(calls.map((call) => stateOf(call, elapsed)).join("\n"))

/** The results of calls that have ended, and the progress of the others. `details` says which ends the model has read. */
const read = ({ elapsed }: Run, calls: ReadonlyArray<BackgroundCall>): Tool.ToolOutput => {
  if (calls.length === 0) return Tool.output("You have read the ends of all background calls.")
  const ends = calls.flatMap(({ end }) => end ?? [])
  const isUntrusted = calls.some(
    ({ outcome, partial }) => (outcome?.output ?? partial)?.trust === "untrusted"
  )
  return Tool.output(contentOf(calls, elapsed), {
    ...(ends.length === 0 ? {} : { details: { backgroundEnds: ends } }),
    ...(isUntrusted ? { trust: "untrusted" as const } : {})
  })
}
