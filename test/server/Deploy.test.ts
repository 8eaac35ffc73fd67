/** A process that ends while runs have not: the next one of the same stores has them. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { Approval, Tool } from "effect-agent"
import { Runs } from "effect-agent/server"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { eventsOf, layer, stores, waiting } from "./host.ts"
import { session } from "./runsContract.ts"

const remove = Tool.make({ name: "remove", description: "x", execute: () => Effect.succeed("removed") })
const done = ScriptedProvider.text("done")
const call = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.turn(
    ...names.map((name) => Step.toolCall(name, name === "ask_user" ? { question: "Where?" } : {})),
    Step.finish("toolUse")
  )

/** Waits until a run has an event. */
const until = (runs: Runs.Service, runId: string, tag: string) =>
  Effect.flatMap(runs.events(runId, 0), (events) =>
    Stream.runDrain(Stream.takeUntil(events, ({ event }) => event._tag === tag))
  )

const answered = Effect.fnUntraced(function* (runs: Runs.Service, runId: string) {
  const { approvals, questions } = (yield* runs.get(runId)).pending
  for (const { approvalId, argumentsHash } of approvals)
    yield* runs.approve(runId, approvalId, { decision: "approve", argumentsHash })
  for (const { questionId } of questions) yield* runs.answer(runId, questionId, { answer: "Oslo" })
  return approvals.length + questions.length
})

interface Case {
  readonly what: string
  readonly calls: ReadonlyArray<string>
  /** The event behind which the process ends. */
  readonly tag: string
  readonly isPaused?: boolean
  /** Whether the run works until the time of the process is over. */
  readonly works?: boolean
}

const cases: ReadonlyArray<Case> = [
  { what: "waits for an approval", calls: ["remove"], tag: "ApprovalRequested" },
  { what: "waits for the answer to a question", calls: ["ask_user"], tag: "QuestionAsked" },
  { what: "is paused", calls: ["wait"], tag: "RunPaused", isPaused: true },
  {
    what: "waits for an approval while another call works",
    calls: ["remove", "wait"],
    tag: "ToolInvoked",
    works: true
  },
  { what: "works", calls: ["wait"], tag: "ToolInvoked", works: true }
]

describe("a process that is about to end", () => {
  for (const { calls, isPaused = false, tag, what, works = false } of cases)
    it.effect(
      `leaves a run ${works ? "after its time" : "at once"} that ${what}, and the next one has it`,
      () =>
        Effect.gen(function* () {
          const places = yield* stores
          const gate = yield* Deferred.make<void>()
          const setup = {
            tools: [
              remove,
              Approval.askUser(),
              { ...waiting("wait", Deferred.await(gate)), effect: "pure" as const }
            ],
            needsApproval: ["remove"]
          }
          const scope = yield* Scope.make()
          const old = yield* Layer.buildWithScope(layer([call(...calls), done], setup, places), scope)
          const { runId, watcher } = yield* Effect.gen(function* () {
            const runs = yield* Runs.Runs
            const sessionId = yield* session
            const { runId } = yield* runs.start({ sessionId, prompt: "Go" })
            const watcher = yield* Effect.forkChild(eventsOf(runId))
            yield* until(runs, runId, isPaused ? "ToolInvoked" : tag)
            if (isPaused) {
              yield* runs.pause(runId)
              yield* Deferred.succeed(gate, undefined)
              yield* until(runs, runId, tag)
            }
            const draining = yield* Effect.forkChild(runs.drain("10 seconds"))
            for (let index = 0; index < 200; index++) yield* Effect.yieldNow
            assert.strictEqual(draining.pollUnsafe() === undefined, works)
            if (works) yield* TestClock.adjust("10 seconds")
            yield* Fiber.join(draining)
            return { runId, watcher }
          }).pipe(Effect.provideContext(old))
          const seen = yield* Fiber.join(watcher)
          assert.notStrictEqual(seen.at(-1)?.event._tag, "RunEnd")
          yield* Scope.close(scope, Exit.void)
          yield* Effect.gen(function* () {
            const runs = yield* Runs.Runs
            yield* Deferred.succeed(gate, undefined)
            for (let index = 0; index < 200; index++) yield* Effect.yieldNow
            if (isPaused) {
              assert.strictEqual((yield* runs.get(runId)).status, "paused")
              yield* runs.resume(runId)
            }
            assert.strictEqual(yield* answered(runs, runId), calls[0] === "wait" ? 0 : 1)
            const rest = yield* eventsOf(runId, seen.at(-1)?.position)
            assert.deepInclude(rest.at(-1)?.event, { _tag: "RunEnd", status: "completed" })
            assert.strictEqual((yield* runs.get(runId)).status, "completed")
          }).pipe(Effect.provide(layer([done], setup, places)))
        })
    )

  it.effect("answers nothing more about a run that it has left", () =>
    Effect.gen(function* () {
      const runs = yield* Runs.Runs
      const { runId } = yield* runs.start({ sessionId: yield* session, prompt: "Go" })
      yield* until(runs, runId, "ApprovalRequested")
      yield* runs.drain("10 seconds")
      assert.strictEqual((yield* Effect.flip(answered(runs, runId)))._tag, "Draining")
      assert.strictEqual((yield* Effect.flip(runs.cancel(runId)))._tag, "RunNotReady")
      assert.lengthOf((yield* runs.get(runId)).pending.approvals, 1)
    }).pipe(Effect.provide(layer([call("remove"), done], { tools: [remove], needsApproval: ["remove"] })))
  )

  it.effect("shows a run that another process of its stores has, and takes it when that one ends", () =>
    Effect.gen(function* () {
      const places = yield* stores
      const setup = { tools: [remove], needsApproval: ["remove"] }
      const scope = yield* Scope.make()
      const make = layer([call("remove"), done], setup, places)
      const old = Context.get(yield* Layer.buildWithScope(make, scope), Runs.Runs)
      const other = Context.get(yield* Layer.build(layer([done], setup, places)), Runs.Runs)
      const sessionId = yield* old.sessions.create({ sessionId: "s" })
      const { runId } = yield* old.start({ sessionId, prompt: "Go" })
      yield* until(old, runId, "ApprovalRequested")
      const seen = yield* other.get(runId)
      assert.deepStrictEqual([seen.status, seen.pending.approvals.length], ["running", 1])
      assert.deepStrictEqual(yield* other.list(sessionId), [yield* old.get(runId)])
      assert.strictEqual(yield* other.active(sessionId), runId)
      const watcher = yield* Effect.forkChild(Effect.provideService(eventsOf(runId), Runs.Runs, other))
      assert.strictEqual((yield* Effect.flip(answered(other, runId)))._tag, "SessionLocked")
      const refused = yield* Effect.flip(other.cancel(runId))
      assert.strictEqual(refused._tag, "RunNotReady")
      assert.include(refused._tag === "RunNotReady" ? refused.detail : "", "Another process has the run")
      yield* old.drain("10 seconds")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* answered(other, runId), 1)
      yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => watcher.pollUnsafe() !== undefined })
      const tags = (yield* Fiber.join(watcher)).map(({ event }) => event._tag)
      assert.deepStrictEqual(
        tags.filter((tag) => tag === "RunStart" || tag === "RunEnd"),
        ["RunStart", "RunEnd"]
      )
      assert.strictEqual((yield* other.get(runId)).status, "completed")
    }).pipe(Effect.scoped)
  )
})
