import { assert, it } from "@effect/vitest"
import { Effect, Exit, Metric, Scope } from "effect"
import { processOf } from "../server/sqlRuns.ts"
import { onEach } from "../sql/suites.ts"

const taken = Effect.map(
  Metric.value(
    Metric.counter("effect_agent.durable.sessions.taken", {
      description: "Sessions taken from a process that did not let go of them",
      incremental: true
    })
  ),
  ({ count }) => count
)

onEach((_, make) => {
  it.live(
    "the sessions that a process takes from one that did not let go of them are counted",
    () =>
      Effect.gen(function* () {
        const url = yield* make
        const [one, two] = [yield* processOf(url), yield* processOf(url)]
        const before = yield* taken
        yield* Effect.scoped(one.sessions.create({ sessionId: "s" }))
        yield* Effect.scoped(two.sessions.open("s"))
        assert.strictEqual(yield* taken, before)
        const frozen = yield* Scope.make()
        yield* Scope.provide(one.sessions.open("s"), frozen)
        yield* Effect.scoped(two.sessions.open("s"))
        assert.strictEqual(yield* taken, before + 1)
        yield* Scope.close(frozen, Exit.void)
        yield* Effect.scoped(one.sessions.open("s"))
        assert.strictEqual(yield* taken, before + 1)
      }),
    60_000
  )
})
