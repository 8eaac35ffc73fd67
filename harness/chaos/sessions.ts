/**
 * Conversations of ten turns with twenty tool calls, whose process is killed at each of its writes and at random moments, and most of them
 * again while they recover. Whatever the moment: each message that a subscriber has seen is in the session, the session can be read, no
 * tool call is run twice, each request is valid, and the conversation comes to its end.
 */
import { Effect, type Scope } from "effect"
import { join } from "node:path"
import * as Databases from "../../test/sql/databases.ts"
import * as Postgres from "../../test/sql/postgres.ts"
import * as Bundled from "./Bundled.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { round, type Played, type Round } from "./sessions/round.ts"

export const sessions: Chaos = {
  count: 500,
  unit: "conversations",
  run: (options) => Effect.scoped(run(options))
}

/** Conversations side by side. */
const concurrency = 4

/** The kinds of stores, each with a place for all conversations. */
const places = (home: string) =>
  Effect.gen(function* () {
    const sqlite = yield* Databases.sqlite
    const files = { jsonl: `jsonl:${join(home, "sessions")}`, sqlite }
    if (!Postgres.isInstalled) return Object.entries(files)
    const server = yield* Postgres.start
    return Object.entries({ ...files, postgres: yield* Databases.postgres(server) })
  })

const run = Effect.fnUntraced(function* ({
  count,
  say,
  seed,
  store
}: Options): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const home = yield* Bundled.folder("sessions")
  const player = yield* Bundled.make("sessions/player.ts", home)
  const all = (yield* places(home)).filter(([kind]) => store === undefined || kind === store)
  if (all.length === 0) return { figures: {}, violations: [`there is no store ${store}`] }
  const played: Array<Played> = []
  const rounds = Array.from({ length: count }, (_, index): Round => {
    const [kind = "", url = ""] = all[index % all.length] ?? []
    return { kind, url, seed: seed + index, player, home }
  })
  yield* Effect.forEach(
    rounds,
    (each) =>
      Effect.map(round(each), (one) => {
        played.push(one)
        if (played.length % 50 === 0) say(`${played.length} conversations`)
      }),
    { concurrency, discard: true }
  )
  return judge(played)
})

const judge = (played: ReadonlyArray<Played>): Outcome => {
  const sum = (of: (one: Played) => number) => played.reduce((total, one) => total + of(one), 0)
  const kinds = [...new Set(played.map(({ kind }) => kind))]
  return {
    figures: {
      ...Object.fromEntries(kinds.map((kind) => [kind, played.filter((one) => one.kind === kind).length])),
      kills: sum(({ kills }) => kills),
      "kills during a recovery": sum(({ kills }) => Math.max(0, kills - 1)),
      "messages seen": sum(({ messages }) => messages),
      "tool calls that ended": sum(({ ended }) => ended),
      "tool calls with an unknown end": sum(({ unknown }) => unknown),
      "slowest opening after a kill (ms)": Math.round(Math.max(0, ...played.map(({ slowest }) => slowest)))
    },
    violations: played.flatMap(({ violations }) => violations)
  }
}
