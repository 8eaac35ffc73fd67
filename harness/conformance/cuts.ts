/**
 * Recorded answers of real providers, cut: wherever the network parts the bytes, the events are those of the whole.
 *
 * Each body is fed to its protocol, without a network,
 *
 * - in two pieces, parted at every byte. A body of more than 4 KiB is parted at 128 places spread over it, and at bytes inside
 *   of a character or around the end of a line, where a reader can go wrong: each, or 256 of them
 * - in pieces of random sizes, 100 times, from a few large ones to single bytes
 *
 * With `--whole` it is every byte of every body, and ten thousand times.
 *
 * And ten of them, from all over the folder, go over HTTP in small pieces. Every case is a body; those ten are one more.
 */
import { Effect, Result, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Message, type ModelEvent, Provider, type ProviderError } from "effect-agent"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Random } from "../chaos/Random.ts"
import * as Apis from "./Api.ts"
import type { Judged, Kind } from "./suite.ts"
import type { Words } from "./words.ts"

/** Bodies up to this size are parted at every byte. */
const small = 4 * 1024
/** Of larger ones, so many places, and at most so many where a reader can go wrong. */
const places = 128
const tenderPlaces = 256
const multiCuts = 100
const wholeMultiCuts = 10_000
const overHttp = 10

export const kind: Kind = async (dir, { whole }) => {
  const beside: Words = await import(pathToFileURL(join(dir, "..", "replay-server.mjs")).href)
  const server: Words = await beside.startReplay({ corpus: dir })
  const recordings = readdirSync(dir)
    .toSorted()
    .flatMap((api) =>
      readdirSync(join(dir, api))
        .toSorted()
        .map((name) => read(dir, api, name))
    )
  const known = recordings.flatMap((recording) => {
    const api = Apis.byName[recording.api]
    return api === undefined ? [] : [{ api, recording }]
  })
  const travelling = spread(known.filter(isAnswer), overHttp)
  return {
    // Computing, but for the ten. Those come first: a connection that is kept is lost while nobody looks after it.
    concurrency: 1,
    figures: (verdicts) => {
      const read = known.filter(({ recording }) => verdicts.has(recording.name))
      const bodies = read.map(({ recording }) => recording.body)
      const cuts = bodies.reduce((sum, body) => sum + placesIn(body, whole).length, 0)
      return [
        `${read.length} bodies, parted in two at ${cuts} places, in many pieces ${timesOf(whole)} times each`
      ]
    },
    skipped: recordings.filter(({ api }) => Apis.byName[api] === undefined).map(({ name }) => name),
    cases: [
      ...travelling.map(({ api, recording }) => ({
        name: `${recording.name} over HTTP`,
        run: () => judgeTravelled(api, recording, (options) => server.base(recording.name, options))
      })),
      ...known.map(({ api, recording }) => ({
        name: recording.name,
        run: () => Promise.resolve(judge(api, recording, whole))
      }))
    ],
    close: () => server.close()
  }
}

interface Recording {
  readonly api: string
  readonly name: string
  readonly model: string
  readonly status: number
  readonly type: string
  readonly body: Uint8Array
}

const read = (dir: string, api: string, name: string): Recording => {
  const { http, model }: Words = JSON.parse(readFileSync(join(dir, api, name, "meta.json"), "utf8"))
  return {
    api,
    name: `${api}/${name}`,
    model: model ?? "unnamed",
    status: http.status,
    type: http.headers["content-type"] ?? "",
    body: readFileSync(join(dir, api, name, "response.sse"))
  }
}

/** Whether it gets as far as the protocol: a refusal is no answer. */
const isAnswer = ({ recording: { status, type } }: { readonly recording: Recording }): boolean =>
  status < 300 && !type.includes("html")

/** `count` of them, evenly. */
const spread = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> =>
  all.filter(
    (_, index) => Math.floor((index * count) / all.length) !== Math.floor(((index - 1) * count) / all.length)
  )

const judge = (api: Apis.Api, { body, model }: Recording, whole: boolean): Judged => {
  const uncut = reading(api, model, [body])
  const differs = (where: string, pieces: ReadonlyArray<Uint8Array>) => {
    const difference = compare(uncut, reading(api, model, pieces))
    return difference === undefined ? [] : [`${where}: ${difference}`]
  }
  const problems = [
    ...placesIn(body, whole).flatMap((at) =>
      differs(`cut at ${at}`, [body.subarray(0, at), body.subarray(at)])
    ),
    ...Array.from({ length: timesOf(whole) }, (_, seed) => differs(`seed ${seed}`, pieces(body, seed))).flat()
  ]
  return { problems, actual: uncut }
}

const judgeTravelled = async (
  api: Apis.Api,
  { body, model }: Recording,
  baseUrl: (options: string) => string
): Promise<Judged> => {
  const uncut = reading(api, model, [body])
  const problems: Array<string> = []
  for (const options of ["chunk=1", "rand=7"]) {
    const difference = compare(uncut, await travel(api, model, baseUrl(options)))
    if (difference !== undefined) problems.push(`${options}: ${difference}`)
  }
  return { problems, actual: uncut }
}

// ───────────────────────── Cutting

/** Where a body is parted in two. */
const placesIn = (body: Uint8Array, whole: boolean): ReadonlyArray<number> => {
  const all = Array.from({ length: body.length }, (_, at) => at)
  if (whole || body.length <= small) return all
  const tender = all.filter((at) => isTender(body, at))
  return [
    ...spread(all, Math.min(places, all.length)),
    ...spread(tender, Math.min(tenderPlaces, tender.length))
  ]
}

/** Around the end of a line, or inside of a character. */
const isTender = (body: Uint8Array, at: number): boolean => {
  for (let near = at - 2; near <= at + 1; near++) if (body[near] === 0x0a || body[near] === 0x0d) return true
  return ((body[at] ?? 0) & 0xc0) === 0x80
}

const timesOf = (whole: boolean): number => (whole ? wholeMultiCuts : multiCuts)

/** Sizes, in bytes: the smaller they are the longer it takes, so most are not small. */
const sizes: readonly [number, ...ReadonlyArray<number>] = [4096, 1024, 1024, 512, 512, 256, 256, 128, 64]

const pieces = (body: Uint8Array, seed: number): ReadonlyArray<Uint8Array> => {
  const random = new Random(seed)
  const most = seed === 0 ? 1 : seed < 20 ? 8 : random.pick(...sizes)
  const cut: Array<Uint8Array> = []
  for (let from = 0; from < body.length; ) {
    const to = from + Math.max(1, random.upTo(most))
    cut.push(body.subarray(from, to))
    from = to
  }
  return cut
}

// ───────────────────────── Reading

/** What came of an answer. */
interface Read {
  readonly events: ReadonlyArray<ModelEvent.ModelEvent>
  /** "complete", or why not. */
  readonly outcome: string
}

const reading = (api: Apis.Api, model: string, pieces: ReadonlyArray<Uint8Array>): Read => {
  const answer = api.open(model)
  for (const piece of pieces) answer.push(piece)
  answer.end()
  const { outcome } = answer
  return { events: answer.take(), outcome: typeof outcome === "string" ? outcome : told(outcome) }
}

const told = (reason: ProviderError.Reason): string => `${reason._tag}: ${reason.detail}`

/** The same over HTTP. */
const travel = async (api: Apis.Api, model: string, baseUrl: string): Promise<Read> => {
  const events: Array<ModelEvent.ModelEvent> = []
  const ask = Effect.gen(function* () {
    const provider = yield* Provider.Provider
    const request = { model, messages: [Message.user("Hi")], tools: [], options: {} }
    return yield* Effect.result(
      Stream.runForEach(provider.stream(request), (event) => Effect.sync(() => events.push(headless(event))))
    )
  })
  const result = await Effect.runPromise(
    ask.pipe(Effect.provide(api.layer(baseUrl)), Effect.provide(FetchHttpClient.layer))
  )
  // Ids that we make begin alike in one process.
  const own = new RegExp(`${Message.makeId().replace(/^msg_|[^_]*$/g, "")}[0-9a-z]+`, "g")
  return {
    events: JSON.parse(JSON.stringify(events).replace(own, Apis.seed)),
    outcome: Result.isSuccess(result) ? "complete" : told(result.failure.reason)
  }
}

/** Where two readings differ first. */
const compare = (expected: Read, actual: Read): string | undefined => {
  if (actual.outcome !== expected.outcome) return `${actual.outcome}, uncut ${expected.outcome}`
  const count = Math.max(expected.events.length, actual.events.length)
  for (let index = 0; index < count; index++) {
    const [left, right] = [expected.events[index], actual.events[index]]
    if (!isSame(left, right))
      return `event ${index} is ${JSON.stringify(right)}, uncut ${JSON.stringify(left)}`
  }
  return undefined
}

/** Most events hold but strings and numbers, which compare at once. */
const isSame = (left: Words, right: Words): boolean => {
  if (left === right) return true
  if (typeof left !== "object" || typeof right !== "object") return false
  let members = 0
  for (const member in left) {
    members++
    if (left[member] !== right[member] && !isSame(left[member], right[member])) return false
  }
  for (const _ in right) members--
  return members === 0
}

/** The event without the head of its response, which a recording does not have. */
const headless = (event: ModelEvent.ModelEvent): ModelEvent.ModelEvent => {
  if (event._tag !== "Start") return event
  const { headers: _, rateLimits: __, ...rest } = event
  return rest
}
