import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Loop, Message, ToolRegistry } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { Control } from "../src/internal/control.ts"
import * as Execution from "../src/internal/execution.ts"
import { Queues } from "../src/internal/queues.ts"
import { StopSignal } from "../src/internal/work.ts"
import { say } from "./behaviour/play.ts"

/** How many wait for its stop. */
const waiting = (signal: StopSignal): number => signal["listeners"].length

describe("StopSignal", () => {
  it("tells a child, unless that was released", () => {
    const signal = new StopSignal()
    const [kept, released] = [signal.child(), signal.child()]
    assert.strictEqual(waiting(signal), 2)
    released.release()
    assert.strictEqual(waiting(signal), 1)
    signal.stop({ cause: "cancel", reason: "enough" })
    assert.strictEqual(kept.current?.reason, "enough")
    assert.isUndefined(released.current)
    assert.strictEqual(signal.child().current?.reason, "enough")
  })

  it.effect("forgets those who waited for a pause to end", () =>
    Effect.gen(function* () {
      const control = new Control()
      for (const end of ["resumed", "interrupted"]) {
        const held = yield* Effect.forkChild(control.whileRunnable, { startImmediately: true })
        assert.strictEqual(waiting(control.signal), 1)
        if (end === "resumed") control.resume()
        else yield* Fiber.interrupt(held)
        yield* Fiber.await(held)
        assert.strictEqual(waiting(control.signal), 0)
      }
    })
  )

  it.effect("keeps nobody for a turn that is over", () =>
    Effect.gen(function* () {
      const call = ScriptedProvider.toolCall("a", {})
      const audience = Execution.unheard()
      const options = { model: "m" }
      yield* Loop.execute(
        {
          prompts: [Message.user("hi")],
          messages: [],
          options,
          continued: false,
          pollFirst: false,
          queues: new Queues(),
          nextTurn: () => undefined
        },
        audience
      ).pipe(
        Effect.provide(
          Layer.mergeAll(
            ScriptedProvider.layer([call, call, call, ScriptedProvider.text("done")]),
            ToolRegistry.layer(say("a"))
          )
        )
      )
      // Only the reader, of whom the run lets go when it is stopped.
      assert.strictEqual(waiting(audience.control.signal), 1)
    })
  )
})
