/**
 * Conversations of ten turns with twenty tool calls, whose process is killed at each of its writes and at random moments, and most of them
 * again while they recover. Whatever the moment: each message that a subscriber has seen is in the session, the session can be read, no
 * tool call is run twice, each request is valid, and the conversation comes to its end.
 */
import { Effect, type Scope } from "effect"
import { build } from "esbuild"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as Databases from "../sql/databases.ts"
import * as Postgres from "../sql/postgres.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { round, type Played, type Round } from "./sessions/round.ts"

export const sessions: Chaos = {
  count: 500,
  unit: "conversations",
  run: (options) => Effect.scoped(run(options))
}

/** Conversations side by side. */
const concurrency = 4

const repo = join(import.meta.dirname, "../..")

/** A folder inside, so that a bundle there finds `effect`. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const cache = join(repo, "node_modules/.cache")
    mkdirSync(cache, { recursive: true })
    return mkdtempSync(join(cache, "effect-agent-sessions-"))
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The player as one file, which starts in a fraction of the time of its modules. */
const bundled = (home: string) =>
  Effect.promise(async () => {
    const outfile = join(home, "player.mjs")
    await build({
      entryPoints: [join(import.meta.dirname, "sessions/player.ts")],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      conditions: ["effect-agent-source"],
      external: ["effect-agent/none"],
      banner: {
        js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);'
      },
      logLevel: "error"
    })
    return outfile
  })

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
  const home = yield* folder
  const player = yield* bundled(home)
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
