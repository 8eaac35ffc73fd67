import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { entryOf } from "../../../scripts/bundle.config.ts"
import * as Bars from "../../../harness/bench/program/bars.ts"
import * as Program from "../program.ts"

Program.bundled()

/** So many times its bar a figure may be: other tests run beside this one. Those that are counted have none. */
const leniency: Readonly<Record<string, number>> = {
  paint: 10,
  probed: 10,
  stream: 8,
  echo: 10,
  idle: 20,
  bytes: 1.25,
  open: 5
}

describe("Figures", () => {
  it.live("P-90 the figures of the session are within generous bounds", () =>
    Effect.gen(function* () {
      const sizes = { seconds: 2, megabytes: 2, turns: 30, texts: 400 }
      const all = Bars.jobs(entryOf(`${Program.bundle}/dist`), sizes)
      const measured = yield* Effect.forEach(Object.values(all), (job) => job)
      const figures: Readonly<Record<string, number>> = Object.assign({}, ...measured)
      const missed = Bars.bars.filter(
        ({ figure, most = Infinity }) => !((figures[figure] ?? NaN) <= most * (leniency[figure] ?? 1))
      )
      assert.deepStrictEqual(missed, [], JSON.stringify(figures))
    })
  )
})
