import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { Runs } from "effect-agent/server"
import { type Disk, disk, drive, Life, processOf, World } from "./killing.ts"

type Request = (runs: Runs.Service, runId: string) => Effect.Effect<unknown, unknown>

/** The events of the run at which the request comes. */
const places = Array.from({ length: 18 }, (_, index) => 1 + index * 5)

/**
 * A process that gets a request at an event of its run, and that is killed at a write after it has acknowledged the request. Returns the run,
 * and whether it did.
 */
const acknowledged = Effect.fnUntraced(function* (
  stores: Disk,
  request: Request,
  at: number,
  writes: number
) {
  const life = new Life(Infinity)
  const world = new World()
  const begun = Deferred.makeUnsafe<string>()
  let isAcknowledged = false
  const work = Effect.gen(function* () {
    const runs = yield* Runs.Runs
    yield* runs.sessions.create({ sessionId: "s" })
    const { runId } = yield* runs.start({ sessionId: "s", prompt: "Go" })
    Deferred.doneUnsafe(begun, Effect.succeed(runId))
    const events = yield* runs.events(runId, 0)
    let count = 0
    yield* Stream.runForEach(events, ({ event }) => {
      if (event._tag === "MessageDelta" || ++count !== at) return Effect.void
      const asked = Effect.map(request(runs, runId), () => {
        isAcknowledged = true
        life.endAfter(writes)
      })
      return Effect.ignore(asked)
    })
    return yield* Effect.never
  }).pipe(Effect.provide(processOf(world, stores, life)))
  yield* Effect.forkDetach(work)
  const runId = yield* Deferred.await(begun)
  // Until it is dead, or waits for a person.
  for (let index = 0; index < 3000 && !life.isOver; index++) yield* Effect.yieldNow
  life.endAfter(-1)
  for (let index = 0; index < 50; index++) yield* Effect.yieldNow
  yield* life.bury
  return { runId, isAcknowledged }
})

/** What the next process makes of a run. */
const next = <A, E>(stores: Disk, look: (runs: Runs.Service) => Effect.Effect<A, E>) =>
  Effect.flatMap(Runs.Runs, look).pipe(Effect.provide(processOf(new World(), stores, new Life(Infinity))))

const each = (
  request: Request,
  check: (stores: Disk, runId: string, label: string) => Effect.Effect<void, unknown>
) =>
  Effect.gen(function* () {
    let count = 0
    for (const at of places) {
      for (const writes of [0, 1, 2]) {
        const stores = yield* disk
        const { isAcknowledged, runId } = yield* acknowledged(stores, request, at, writes)
        if (!isAcknowledged) continue
        count++
        yield* check(stores, runId, `event ${at}, ${writes} writes`)
      }
    }
    assert.isAbove(count, 20)
  })

const finished = (runs: Runs.Service, runId: string) => drive(runs, runId, [], { steered: true })

describe("a request that was acknowledged before its process was killed", () => {
  it.effect(
    "cancels the run",
    () =>
      each(
        (runs, runId) => runs.cancel(runId, "enough"),
        (stores, runId, label) =>
          next(stores, (runs) =>
            Effect.gen(function* () {
              const seen: Array<Runs.Positioned> = []
              yield* drive(runs, runId, seen, { steered: true })
              assert.strictEqual((yield* runs.get(runId)).status, "cancelled", label)
              const cancels = seen.flatMap(({ event }) =>
                event._tag === "RunCancelled" ? [event.reason] : []
              )
              assert.deepStrictEqual(cancels, ["enough"], label)
            })
          )
      ),
    60_000
  )

  it.effect(
    "pauses the run, until it is resumed",
    () =>
      each(
        (runs, runId) => runs.pause(runId, "wait"),
        (stores, runId, label) =>
          next(stores, (runs) =>
            Effect.gen(function* () {
              for (let index = 0; index < 300; index++) yield* Effect.yieldNow
              assert.strictEqual((yield* runs.get(runId)).status, "paused", label)
              yield* runs.resume(runId)
              yield* finished(runs, runId)
              assert.strictEqual((yield* runs.get(runId)).status, "completed", label)
            })
          )
      ),
    60_000
  )

  it.effect(
    "resumes the run",
    () =>
      each(
        (runs, runId) =>
          Effect.gen(function* () {
            yield* runs.pause(runId)
            for (let index = 0; index < 20; index++) yield* Effect.yieldNow
            yield* runs.resume(runId)
          }),
        (stores, runId, label) =>
          next(stores, (runs) =>
            Effect.gen(function* () {
              yield* finished(runs, runId)
              assert.strictEqual((yield* runs.get(runId)).status, "completed", label)
            })
          )
      ),
    60_000
  )

  it.effect(
    "puts a message into the conversation once",
    () =>
      each(
        (runs, runId) => runs.steer(runId, "Hurry."),
        (stores, runId, label) =>
          next(stores, (runs) =>
            Effect.gen(function* () {
              yield* finished(runs, runId)
              const { view } = yield* Effect.orDie(stores.sessions.read("s"))
              const all = [...view.messages, ...view.queues.steering]
              const said = all.filter((message) => JSON.stringify(message).includes("Hurry."))
              assert.lengthOf(said, 1, label)
            })
          )
      ),
    60_000
  )
})

describe("a run that was paused when its process was killed", () => {
  it.effect(
    "shows one end of its pause, also if it is resumed before it waits again",
    () =>
      Effect.gen(function* () {
        for (const at of places) {
          const stores = yield* disk
          const paused = (runs: Runs.Service, runId: string) =>
            Effect.gen(function* () {
              yield* runs.pause(runId)
              const events = yield* runs.events(runId, 0)
              yield* Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === "RunPaused"))
            })
          const { isAcknowledged, runId } = yield* acknowledged(stores, paused, at, 0)
          if (!isAcknowledged) continue
          const seen: Array<Runs.Positioned> = []
          yield* next(stores, (runs) =>
            Effect.andThen(runs.resume(runId), drive(runs, runId, seen, { steered: true }))
          )
          const shown = seen.map(({ event }) => event._tag).filter((tag) => /^Run(Paused|Resumed)$/.test(tag))
          assert.deepStrictEqual(shown, ["RunPaused", "RunResumed"], `event ${at}`)
        }
      }),
    60_000
  )
})
