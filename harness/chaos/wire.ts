/**
 * Damaged answers, for each of the five languages: bytes flipped, cut, dropped, doubled, swapped and inserted, and events
 * likewise. Whatever comes: nothing is thrown, nothing hangs, the events keep their grammar, a cut changes nothing, and no
 * tool is run with anything but what a strict second reading of the same bytes finds too.
 */
import { Effect, Option } from "effect"
import type { ModelEvent } from "effect-agent"
import * as Api from "../conformance/Api.ts"
import * as anthropicStreams from "../differential/streams/anthropic.ts"
import type { Fixture } from "../differential/streams/Fixture.ts"
import * as bedrockStreams from "../differential/streams/bedrock.ts"
import * as googleStreams from "../differential/streams/google.ts"
import * as openAiChatStreams from "../differential/streams/openAiChat.ts"
import * as openAiResponsesStreams from "../differential/streams/openAiResponses.ts"
import * as EventStream from "../../test/providers/bedrock.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { Random } from "./Random.ts"
import * as Grammar from "./wire/grammar.ts"
import * as Loop from "./wire/loop.ts"
import * as Mutation from "./wire/mutation.ts"
import * as Strict from "./wire/strict.ts"

/** `count` is per language. */
export const wire: Chaos = {
  count: 100_000,
  run: (options) =>
    Effect.map(
      Effect.forEach(languages, (language) => damage(language, options)),
      judge
    )
}

/** One in so many is also played through a whole run. */
const played = 50
/** Milliseconds that reading one body may take, on a machine that does other things too. */
const slowest = 1000

interface Language {
  readonly name: string
  readonly api: Api.Api
  readonly fixtures: ReadonlyArray<Fixture>
  /** The calls that a strict reading finds. */
  readonly strict: (body: Uint8Array) => ReadonlyArray<ReadonlyArray<Strict.Call>>
  /** The bytes of server-sent events on the wire (default: their own). */
  readonly framed?: (events: Uint8Array) => Uint8Array<ArrayBuffer>
}

const strict =
  (language: Strict.Read): Language["strict"] =>
  (body) =>
    Strict.read(body, language)

const languages: ReadonlyArray<Language> = [
  {
    name: "openai-chat",
    api: Api.openAiChat,
    fixtures: openAiChatStreams.fixtures,
    strict: strict(Strict.openAiChat)
  },
  {
    name: "openai-responses",
    api: Api.openAiResponses,
    fixtures: openAiResponsesStreams.fixtures,
    strict: strict(Strict.openAiResponses)
  },
  {
    name: "anthropic-messages",
    api: Api.anthropic,
    fixtures: anthropicStreams.fixtures,
    strict: strict(Strict.anthropic)
  },
  {
    name: "google-generative",
    api: Api.google,
    fixtures: googleStreams.fixtures,
    strict: strict(Strict.google)
  },
  {
    name: "bedrock-converse",
    api: Api.bedrock,
    fixtures: bedrockStreams.fixtures,
    strict: (body) => Strict.bedrock(EventStream.read(body)),
    framed: EventStream.framed
  }
]

/** What came of one language. */
class Tally {
  readonly name: string
  /** Answers that were whole in spite of the damage, and calls of theirs that would be run. */
  complete = 0
  run = 0
  /** Calls that the strict reading finds and we leave alone. */
  left = 0
  longest = 0
  readonly violations: Array<string> = []

  constructor(name: string) {
    this.name = name
  }
}

const damage = Effect.fnUntraced(function* (language: Language, { count, say, seed }: Options) {
  const tally = new Tally(language.name)
  const bodies = language.fixtures.map(({ body }) => new TextEncoder().encode(body))
  const [first = new Uint8Array(), ...others] = bodies
  for (let index = 0; index < count; index++) {
    const random = new Random(seed + index)
    const body = damagedBody(language, [first, ...others], random)
    const name = `${language.name}, seed ${seed + index}`
    const problems = [...inspect(language, body, random, tally)]
    if (index % played === 0) problems.push(...(yield* playThrough(language, body)))
    tally.violations.push(...problems.map((problem) => `${name}: ${problem}`))
    // Somebody may want to stop this.
    if (index % 1000 === 0) yield* Effect.yieldNow
  }
  say(`${language.name}: ${count}, ${tally.violations.length} violations`)
  return tally
})

/** A damaged body. In binary frames, the events are damaged before they are framed, and every third body after it too. */
const damagedBody = (
  { framed }: Language,
  bodies: readonly [Uint8Array, ...ReadonlyArray<Uint8Array>],
  random: Random
): Uint8Array => {
  const events = Mutation.mutate(random.pick(...bodies), bodies, random)
  if (framed === undefined) return events
  const body = framed(events)
  return random.once(3) ? Mutation.mutate(body, [body], random) : body
}

// ───────────────────────── One body

const inspect = (
  { api, strict }: Language,
  body: Uint8Array,
  random: Random,
  tally: Tally
): ReadonlyArray<string> => {
  try {
    const begun = performance.now()
    const { events, outcome } = readIn(api.open("m"), Mutation.pieces(body, random))
    const took = performance.now() - begun
    tally.longest = Math.max(tally.longest, took)
    const isComplete = outcome === "complete"
    tally.complete += isComplete ? 1 : 0

    const ours = runnable(events)
    const theirs = strict(body)
    tally.run += ours.length
    const called = theirs.map((account) => account.filter(isKnown).length)
    tally.left += Math.max(0, Math.max(0, ...called) - ours.length)
    const broken = Grammar.broken(events, isComplete)
    return [
      ...(outcome === "open" ? ["never over"] : []),
      ...(broken === undefined ? [] : [broken]),
      ...Strict.beyond(ours, theirs).map(({ name, params }) => `would run ${name} ${params}`),
      ...inLenience(api, body, theirs),
      ...(took > slowest ? [`took ${took.toFixed(0)} ms`] : []),
      ...(random.once(10) ? differing(readIn(api.open("m"), [body]), { events, outcome }) : [])
    ]
  } catch (thrown) {
    return [`threw ${thrown instanceof Error ? thrown.stack : String(thrown)}`]
  }
}

/** The lenient reading keeps the grammar of events, and where the answer has an end it runs no other calls than the strict one. */
const inLenience = (
  api: Api.Api,
  body: Uint8Array,
  theirs: ReturnType<Language["strict"]>
): ReadonlyArray<string> => {
  const { events, outcome } = readIn(api.open("m", true), [body])
  const broken = Grammar.broken(events, outcome === "complete")
  const finish = events.at(-1)
  const isForgiven = finish?._tag === "Finish" && finish.unrepresented !== undefined
  const beyond = isForgiven ? [] : Strict.beyond(runnable(events), theirs)
  return [
    ...(broken === undefined ? [] : [`leniently, ${broken}`]),
    ...beyond.map(({ name, params }) => `leniently, would run ${name} ${params}`)
  ]
}

interface Heard {
  readonly events: ReadonlyArray<ModelEvent.ModelEvent>
  readonly outcome: string
}

const readIn = (answer: ReturnType<Api.Api["open"]>, pieces: ReadonlyArray<Uint8Array>): Heard => {
  for (const piece of pieces) answer.push(piece)
  answer.end()
  const { outcome } = answer
  return { events: answer.take(), outcome: typeof outcome === "string" ? outcome : `${outcome}` }
}

const differing = (whole: Heard, cut: Heard): ReadonlyArray<string> =>
  JSON.stringify(whole) === JSON.stringify(cut) ? [] : ["differs when it is cut"]

const isKnown = ({ name }: Strict.Call): boolean => Loop.toolNames.includes(name)

/** What a loop would run: the calls that ended, with arguments that are JSON, of an answer that no limit cut. */
const runnable = (events: ReadonlyArray<ModelEvent.ModelEvent>): ReadonlyArray<Strict.Call> => {
  const finish = events.at(-1)
  if (finish?._tag !== "Finish" || finish.stopReason === "length") return []
  const names = new Map(
    events.flatMap((event) => (event._tag === "ToolCallStart" ? [[event.contentIndex, event.name]] : []))
  )
  return events
    .flatMap((event) => {
      if (event._tag !== "ToolCallEnd") return []
      const { contentIndex, rawArguments } = event
      return Strict.call(names.get(contentIndex), rawArguments)
    })
    .filter(isKnown)
}

/** The same through a run, which must end in order. */
const playThrough = ({ api, fixtures, framed, strict }: Language, body: Uint8Array) =>
  Loop.play(api.layer("http://127.0.0.1:9"), new Uint8Array(body), wholeOf(fixtures[0], framed)).pipe(
    Effect.timeoutOption("10 seconds"),
    Effect.map((result) => {
      if (Option.isNone(result)) return ["the run hangs"]
      const { calls, last } = result.value
      return [
        ...(last === "RunEnd" ? [] : [`the run ends with ${last}`]),
        // A run finds a tool by its name without the white space around it, of which a byte order mark is one.
        ...Strict.beyond(calls, strict(body).map(trimmed)).map(({ name, params }) => `ran ${name} ${params}`)
      ]
    })
  )

const trimmed = (calls: ReadonlyArray<Strict.Call>): ReadonlyArray<Strict.Call> =>
  calls.map((call) => ({ ...call, name: call.name.trim() }))

const wholeOf = ({ body }: Pick<Fixture, "body"> = { body: "" }, framed: Language["framed"]) =>
  framed === undefined ? body : framed(new TextEncoder().encode(body))

const judge = (tallies: ReadonlyArray<Tally>): Outcome => ({
  figures: Object.fromEntries(
    tallies.map(({ complete, left, longest, name, run }) => [
      name,
      `${complete} complete, ${run} calls to run, ${left} left alone, slowest ${longest.toFixed(1)} ms`
    ])
  ),
  violations: tallies.flatMap(({ violations }) => violations)
})
