/** Runs whose processes end at writes, one after another, and what must hold of their logs. */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Scope } from "effect"
import type { Message, RunOptions } from "effect-agent"
import { Runs } from "effect-agent/server"
import { type Disk, drive, Life, processOf, World } from "./killing.ts"

interface Seen {
  readonly seen: Array<Runs.Positioned>
  readonly sent: { steered: boolean }
  readonly limits?: NonNullable<RunOptions.RunOptions["limits"]>
}

/** One process, until it is killed or the run is over. Returns whether it was killed. */
export const live = Effect.fnUntraced(function* (
  world: World,
  disk: Disk,
  kill: number,
  { limits, seen, sent }: Seen
) {
  const life = new Life(kill)
  const scope = yield* Scope.make()
  const work = Effect.gen(function* () {
    const context = yield* Layer.buildWithScope(processOf(world, disk, life, limits), scope)
    const runs = yield* Effect.provide(Runs.Runs, context)
    const known = yield* Effect.result(runs.list("s"))
    if (known._tag === "Failure") yield* runs.sessions.create({ sessionId: "s" })
    const idempotency = { key: "k", body: {} }
    const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go", idempotency })
    yield* drive(runs, runId, seen, sent)
    yield* Scope.close(scope, yield* Effect.exit(Effect.void))
    return runId
  })
  const died = Effect.as(Deferred.await(life.over), undefined)
  const fiber = yield* Effect.forkDetach(Effect.raceFirst(work, Effect.andThen(died, Effect.never)))
  const runId = yield* Effect.raceFirst(Fiber.join(fiber), died)
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return { runId, writes: life.writes }
})

export type Entries = ReadonlyArray<Runs.Positioned>

export const isDelta = ({ event }: Runs.Positioned) => event._tag === "MessageDelta"

/** The events of the run by turn, without those that may differ between runs that did the same. */
export const shape = (entries: Entries) => {
  const retracted = new Set(
    entries.flatMap(({ event }) => (event._tag === "MessageRetracted" ? [event.messageId] : []))
  )
  const left = entries.filter(({ event }) => {
    if (event._tag === "MessageStart" && retracted.has(event.messageId)) return false
    return !["MessageDelta", "MessageRetracted", "QueueUpdate"].includes(event._tag)
  })
  return left
    .map(({ event }) => {
      const tool = "toolName" in event ? event.toolName : ""
      const role = event._tag === "MessageEnd" ? event.message.role : ""
      const started = event._tag === "MessageStart" ? event.role : ""
      // A message of the user comes when it comes.
      const turn = role === "user" || started === "user" ? "" : event.turn
      return `${event.path?.length ?? 0} ${turn ?? ""} ${event._tag} ${tool}${role}${started}`
    })
    .toSorted()
}

export const check = (label: string, entries: Entries, shown: Entries, world: World) => {
  const events = entries.map(({ event }) => event)
  const root = events[0]?.runId ?? ""
  assert.strictEqual(events[0]?._tag, "RunStart", label)
  const ends = events.filter(({ _tag, runId }) => _tag === "RunEnd" && runId === root)
  assert.lengthOf(ends, 1, label)
  const end = events.at(-1)
  assert.strictEqual(end?._tag === "RunEnd" ? end.status : end?._tag, "completed", label)
  // Positions grow, and so do the numbers of each run, also over what watchers saw before.
  const numbers = new Map<string, number>()
  let position = 0
  for (const entry of entries) {
    assert.isAbove(entry.position, position, label)
    position = entry.position
    assert.isAbove(entry.event.seq, numbers.get(entry.event.runId) ?? 0, `${label} ${entry.event._tag}`)
    numbers.set(entry.event.runId, entry.event.seq)
  }
  // I1: what was shown is in the log, at its position.
  const byPosition = new Map(entries.map((entry) => [entry.position, entry.event]))
  for (const entry of shown) {
    if (isDelta(entry)) continue
    assert.deepStrictEqual(byPosition.get(entry.position), entry.event, `${label} shown`)
  }
  // I2: each call has one start and one end.
  const ids = (tag: string) =>
    events.flatMap((event) =>
      event._tag === tag && "toolCallId" in event ? [`${event.runId} ${event.turn} ${event.toolCallId}`] : []
    )
  assert.strictEqual(new Set(ids("ToolExecutionStart")).size, ids("ToolExecutionStart").length, label)
  assert.deepStrictEqual(ids("ToolExecutionEnd").toSorted(), ids("ToolExecutionStart").toSorted(), label)
  // I3.
  const times = new Map<string, number>()
  for (const [tool, key] of world.effects) {
    if (tool === "pay" || tool === "deploy") times.set(key, (times.get(key) ?? 0) + 1)
  }
  for (const [key, count] of times) assert.strictEqual(count, 1, `${label} ${key}`)
  assert.isAtMost(
    new Set(world.effects.filter(([tool]) => tool === "put").map(([, key]) => key)).size,
    7,
    label
  )
}

export const foldOf = (entries: Entries): ReadonlyArray<Message.Message> =>
  entries.flatMap(({ event }) =>
    event._tag === "MessageEnd" && event.path === undefined ? [event.message] : []
  )

export const texts = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => [
    message.role,
    message.role === "toolResult" && message.outcome === "unknown" ? "unknown" : ""
  ])

/** What a run is played with. Default: the agents of `killing.ts`, and a person who sends a message. */
export interface Played {
  readonly agents?: World["agents"]
  readonly sent?: Seen["sent"]
}

/** Kills the run at writes, one process after another. The last process comes to its end. */
export const killed = Effect.fnUntraced(function* <E, R>(
  kills: ReadonlyArray<number>,
  stores: Effect.Effect<Disk, E, R>,
  { agents, sent = { steered: false } }: Played = {}
) {
  const world = new World(agents)
  const seen: Array<Runs.Positioned> = []
  const label = `killed at ${kills.join(", ")}`
  const writes: Array<number> = []
  let runId: string | undefined
  for (const kill of [...kills, Infinity]) {
    const lived = yield* live(world, yield* stores, kill, { seen, sent })
    writes.push(lived.writes)
    runId = lived.runId
    if (runId !== undefined) break
  }
  const entries: Array<Runs.Positioned> = []
  const places = yield* stores
  yield* Effect.scoped(
    Effect.gen(function* () {
      const context = yield* Layer.build(processOf(world, places, new Life(Infinity)))
      const runs = yield* Effect.provide(Runs.Runs, context)
      yield* drive(runs, runId ?? "", entries, sent)
    })
  )
  check(label, entries, seen, world)
  const { view } = yield* places.sessions.read("s")
  assert.deepStrictEqual(
    foldOf(entries).map(({ id }) => id),
    view.messages.map(({ id }) => id),
    label
  )
  assert.strictEqual((yield* places.logs.unended).length, 0, label)
  return { label, entries, world, writes, view }
})
