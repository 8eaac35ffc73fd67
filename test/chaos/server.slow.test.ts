import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Load from "../../harness/chaos/server/Load.ts"

const load: Load.Load = { seed: 19, runs: 20, seconds: 4, fill: 6, watchers: 1, silent: 0 }

describe("chaos", () => {
  it.live(
    "a server streams many runs: nothing is lost, doubled or out of order",
    () =>
      Effect.gen(function* () {
        const { broken, events } = yield* Load.overHttp(load)
        assert.deepStrictEqual(broken, [])
        assert.isAbove(events, 800)
      }),
    60_000
  )

  it.live(
    "a watcher that never reads takes nothing from others, and little memory",
    () =>
      Effect.gen(function* () {
        const megabyte = 1024 * 1024
        // Each of 40 watchers leaves 16 MB unread. The server must not keep these 640 MB, beside what it is itself.
        const fill = Math.round((16 * megabyte) / (load.seconds * 50))
        const { broken, events, server } = yield* Load.overHttp({
          ...load,
          fill,
          runs: 1,
          watchers: 2,
          silent: 40
        })
        assert.deepStrictEqual(broken, [])
        assert.isAbove(events, 50)
        assert.isBelow(server.rss, 600 * megabyte)
      }),
    60_000
  )
})
