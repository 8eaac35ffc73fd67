/**
 * An application that goes on for an hour against a server that treats one request in five badly: what it holds when it
 * rests must not grow.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Logger, Metric, type Scope } from "effect"
import { fork } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { strayFailures } from "./cancel.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Heap from "./Heap.ts"
import { Random } from "./Random.ts"
import * as Application from "./soak/application.ts"
import * as Gauges from "./soak/gauges.ts"

/** `count` is minutes. */
export const soak: Chaos = {
  count: 60,
  unit: "minutes",
  run: (options) =>
    Effect.suspend(() => {
      const fibers = new Gauges.Fibers()
      return Effect.scoped(run(options, fibers)).pipe(
        Effect.provideService(Metric.FiberRuntimeMetrics, fibers.service),
        Effect.provide([NodeHttpClient.layerUndici, Logger.layer([])])
      )
    })
}

/** Prompts side by side, and milliseconds between two of one lane, on the average: some fifteen prompts a second. */
const lanes = 8
const pause = 400
/** Milliseconds of work, and of rest after it: until then kept connections are closed, and all is measured. */
const work = 24_000
const rest = 6_000
/** A prompt that takes longer hangs. */
const patience = "30 seconds"
/** What is held may grow by this share of its level. Before so many minutes that cannot be told. */
const flat = 0.03
const enough = 20

/** Given to every promise of the application, and never aborted. */
const { signal } = new AbortController()

const run = Effect.fnUntraced(function* ({ count, say, seed }: Options, fibers: Gauges.Fibers) {
  const stray = yield* strayFailures
  const warnings = yield* warned
  const root = yield* folder
  const origin = `http://127.0.0.1:${yield* server(seed)}`
  const random = new Random(seed)
  const { forget, use } = yield* Application.make({ origin, root, signal, random })
  const tally = new Map<string, number>()
  const samples: Array<Gauges.Sample> = []
  const begun = performance.now()
  const minutes = () => (performance.now() - begun) / 60_000
  while (minutes() < count) {
    const until = performance.now() + work
    const lane = Effect.gen(function* () {
      while (performance.now() < until) {
        yield* Effect.sleep(random.upTo(2 * pause))
        const ended = yield* Effect.timeoutOrElse(use, {
          duration: patience,
          orElse: () => Effect.succeed("hangs")
        })
        tally.set(ended, (tally.get(ended) ?? 0) + 1)
      }
    })
    yield* Effect.all(
      Array.from({ length: lanes }, () => lane),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.andThen(forget, Effect.sleep(rest))
    const { bytes } = yield* Heap.sample(0)
    samples.push({ minutes: minutes(), levels: { heap: bytes, ...Gauges.levels(fibers, signal) } })
    say(told(samples.at(-1), tally))
  }
  const left = readdirSync(root).filter((name) => !name.startsWith("note-"))
  say(`${fibers.started} fibers`)
  return judge(samples, tally, [...stray, ...warnings, ...left.map((name) => `left behind: ${name}`)])
})

const told = (sample: Gauges.Sample | undefined, tally: ReadonlyMap<string, number>): string =>
  `${sample?.minutes.toFixed(1)} min, ${sum(tally)} prompts, ${JSON.stringify(sample?.levels)}`

const sum = (tally: ReadonlyMap<string, number>): number =>
  [...tally.values()].reduce((total, count) => total + count, 0)

const judge = (
  samples: ReadonlyArray<Gauges.Sample>,
  tally: ReadonlyMap<string, number>,
  strays: ReadonlyArray<string>
): Outcome => {
  const trends = Gauges.trends(samples)
  const minutes = samples.at(-1)?.minutes ?? 0
  const grown = trends.filter(({ drift }) => minutes >= enough && Math.abs(drift) > flat)
  const bad = [...tally.keys()].filter((ended) => ended === "hangs" || ended.startsWith("defect"))
  return {
    figures: {
      minutes: minutes.toFixed(1),
      prompts: sum(tally),
      ends: [...tally]
        .sort(([, left], [, right]) => right - left)
        .map(([ended, count]) => `${ended} ${count}`)
        .join(", "),
      ...Object.fromEntries(
        trends.map(({ drift, level, name }) => [
          name,
          `${level.toFixed(2)}, changes by ${(100 * drift).toFixed(2)} %`
        ])
      )
    },
    violations: [
      ...grown.map(({ drift, name }) => `${name} changes by ${(100 * drift).toFixed(2)} %`),
      ...bad.map((ended) => `${tally.get(ended)} times: ${ended}`),
      ...strays
    ]
  }
}

/** Warnings of Node, such as the one about listeners that are never taken off, while the scope lasts. */
const warned = Effect.gen(function* () {
  const found: Array<string> = []
  const note = ({ message }: Error) => {
    found.push(`warning: ${message}`)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("warning", note)),
    () => Effect.sync(() => process.off("warning", note))
  )
  return found
})

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-agent-soak-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** Starts the server, and gives its port. */
const server = (seed: number): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => fork(join(import.meta.dirname, "soak/server.ts"), [String(seed)])),
    (child) => Effect.sync(() => child.kill())
  ).pipe(
    Effect.flatMap((child) =>
      Effect.callback<number>((resume) => {
        child.once("message", (port) => resume(Effect.succeed(Number(port))))
      })
    )
  )
