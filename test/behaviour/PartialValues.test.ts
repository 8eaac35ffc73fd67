import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schedule, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { AgentEvent, Loop, ModelEvent, Provider, ProviderError, ToolRegistry } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { AgUi } from "effect-agent/ag-ui"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { Karl, OneRingStream } from "effect-agent/compat"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { JsonPieces } from "../../src/internal/partials.ts"
import { ValueDraft } from "../../src/internal/growing.ts"
import { each } from "../../harness/bench/count.ts"
import { costOf } from "../tools/stretch.ts"
import { maxDepth } from "../../src/internal/json.ts"
import { Random } from "../../harness/chaos/Random.ts"
import { ofTag, play, say, tags } from "./play.ts"

const options = { partialValues: true }
const done = ScriptedProvider.text("done")
const { event } = Step

const call = (pieces: ReadonlyArray<string>, rawArguments = pieces.join("")): ReadonlyArray<Step.Step> => [
  event({ _tag: "ToolCallStart", contentIndex: 0, id: "c1", name: "edit" }),
  ...pieces.map((delta) => event({ _tag: "ToolCallDelta", contentIndex: 0, delta })),
  event({ _tag: "ToolCallEnd", contentIndex: 0, rawArguments })
]
const answer = (pieces: ReadonlyArray<string>, rawArguments?: string) =>
  ScriptedProvider.turn(Step.start, ...call(pieces, rawArguments), Step.finish("toolUse"))

const valuesOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) => {
  let value: Schema.Json | undefined
  return ofTag(events, "PartialValue").map(({ changes }) => (value = AgentEvent.foldValue(value, changes)))
}

/** The values after each piece, as far as there are some. */
const fed = (pieces: ReadonlyArray<string>) => {
  const parser = new JsonPieces()
  let value: Schema.Json | undefined
  return pieces.map((piece) => (value = AgentEvent.foldValue(value, parser.add(piece))))
}

/** Whether a value may become another one by growth alone. */
const isPrefix = (some: Schema.Json | undefined, whole: Schema.Json | undefined): boolean => {
  if (some === undefined) return true
  if (whole === undefined) return false
  if (typeof some === "string") return typeof whole === "string" && whole.startsWith(some)
  if (typeof some !== "object" || some === null) return Object.is(some, whole)
  if (typeof whole !== "object" || whole === null || Array.isArray(some) !== Array.isArray(whole))
    return false
  const others = new Map(Object.entries(whole))
  return Object.entries(some).every(([key, value], index) => {
    const isInOrder = Object.keys(whole)[index] === key
    return isInOrder && others.has(key) && isPrefix(value, others.get(key))
  })
}

const parts = [
  "",
  "a",
  "key",
  " ",
  "\n",
  '"',
  "\\",
  "/",
  "\u0000",
  "é",
  "日本",
  "😀",
  "\ud83d",
  "\ude00",
  "{",
  "]",
  ",",
  "__proto__"
]
const scalars = [0, -0, 1, -12.5, 1e21, 5e-324, true, false, null]

const someText = (random: Random) =>
  Array.from({ length: random.upTo(4) }, () => random.pick("", ...parts)).join("")
/** V8 of Node 24 reads an escape in a key as the key `\` of an object before: its `JSON.parse` is no measure for such keys. */
const someKey = (random: Random) => someText(random).replaceAll("\\", "")
const someJson = (random: Random, depth = 0): Schema.Json => {
  const kind = random.upTo(depth > 4 ? 1 : 3)
  if (kind === 0) return random.pick(0, ...scalars)
  if (kind === 1) return someText(random)
  const inner = Array.from({ length: random.upTo(4) }, () => someJson(random, depth + 1))
  return kind === 2 ? inner : Object.fromEntries(inner.map((value) => [someKey(random), value]))
}
/** A JSON text, and pieces of it. */
const someCut = (random: Random) => {
  const plain = JSON.stringify(someJson(random), null, random.upTo(2))
  const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
  const whole = random.once(2) ? plain : plain.replaceAll(/[^ -~\n]/g, escaped)
  const cuts = Array.from({ length: random.upTo(11) }, () => random.upTo(whole.length))
  const places = [0, ...cuts.toSorted((a, b) => a - b), whole.length]
  const pieces = places.slice(1).map((end, index) => whole.slice(places[index], end))
  return { whole, pieces: random.once(4) ? whole.split("") : pieces }
}

describe("partialValues", () => {
  it.effect("follows each delta of arguments with what it changes (row 58)", () =>
    Effect.gen(function* () {
      const pieces = ['{"path": "src/in', 'dex.ts", "edits": [{"li', 'ne": 4', '2, "new": "a\\', 'nb"}', "]}"]
      const { events } = yield* play([answer(pieces), done], { tools: [say("edit")], options })
      const parts = events.flatMap((each): ReadonlyArray<unknown> => {
        if (each._tag === "MessageDelta") return [each.delta._tag]
        return each._tag === "PartialValue" ? [each.changes] : []
      })
      assert.deepStrictEqual(parts.slice(0, 12), [
        "ToolCallStart",
        "ToolCallDelta",
        [{ path: [], set: { path: "src/in" } }],
        "ToolCallDelta",
        [
          { path: ["path"], append: "dex.ts" },
          { path: ["edits"], set: [{}] }
        ],
        "ToolCallDelta",
        "ToolCallDelta",
        [
          { path: ["edits", 0, "line"], set: 42 },
          { path: ["edits", 0, "new"], set: "a" }
        ],
        "ToolCallDelta",
        [{ path: ["edits", 0, "new"], append: "\nb" }],
        "ToolCallDelta",
        "ToolCallEnd"
      ])
      const [first] = ofTag(events, "PartialValue")
      const [start] = ofTag(events, "MessageStart").filter(({ role }) => role === "assistant")
      assert.deepInclude(first, { index: 0, for: "arguments", toolCallId: "c1", toolName: "edit", turn: 1 })
      assert.strictEqual(first?.messageId, start?.messageId)
      const [started] = ofTag(events, "ToolExecutionStart")
      assert.deepStrictEqual(valuesOf(events).at(-1), started?.params)
      const codec = Schema.toCodecJson(AgentEvent.AgentEvent)
      for (const part of ofTag(events, "PartialValue")) {
        assert.deepStrictEqual(
          yield* Schema.decodeUnknownEffect(codec)(JSON.parse(JSON.stringify(part))),
          part
        )
      }
      assert.deepStrictEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1)
      )
    })
  )

  it.effect("adds nothing to protocols that do not know it", () =>
    Effect.gen(function* () {
      const { events } = yield* play([answer(['{"a":', '"b"}']), done], { tools: [say("edit")], options })
      const plain = events.filter(({ _tag }) => _tag !== "PartialValue")
      assert.isBelow(plain.length, events.length)
      const all = (of: ReadonlyArray<AgentEvent.AgentEvent>) => {
        const stream = Stream.fromIterable(of)
        return Effect.all([
          Stream.runCollect(AiSdkUi.project()(stream)),
          Stream.runCollect(AgUi.project({ threadId: "t", runId: "r" })(stream)),
          Stream.runCollect(Karl.project(stream)),
          Stream.runCollect(OneRingStream.project()(stream))
        ])
      }
      assert.deepStrictEqual(yield* all(events), yield* all(plain))
    })
  )

  it.effect("emits nothing without the option", () =>
    Effect.gen(function* () {
      const { events } = yield* play([answer(['{"a":', "1}"]), done], { tools: [say("edit")] })
      assert.notInclude(tags(events), "PartialValue")
    })
  )

  it("ends with the parsed value of any JSON cut anywhere, and only grows (row 58)", () => {
    const random = new Random(58)
    for (let round = 0; round < 500; round++) {
      const { pieces, whole } = someCut(random)
      const parsed: Schema.Json = JSON.parse(whole)
      const values = fed(pieces)
      // The end of the text decides about a number or a literal without brackets.
      const isShown = typeof parsed === "string" || (typeof parsed === "object" && parsed !== null)
      assert.deepStrictEqual(values.at(-1), isShown ? parsed : undefined, whole)
      for (const value of values) {
        assert.isTrue(isPrefix(value, parsed), JSON.stringify([pieces, value]))
        if (typeof value === "string" && typeof parsed === "string")
          assert.isFalse(isWithinPair(parsed, value.length), whole)
      }
    }
  }, 60_000)

  it.effect("ends with the params of the call for any arguments (row 58)", () =>
    Effect.gen(function* () {
      const given: ReadonlyArray<readonly [ReadonlyArray<string>, string?]> = [
        [[], '{"a":1}'],
        [["{", '"a"'], '{"a":2}'],
        [['{"a":1}'], '{"b":1}'],
        [[""], ""],
        [["nul", "l"]],
        [["4", "2"]],
        [[' ["x"', "] "]]
      ]
      for (const [pieces, whole] of given) {
        const { events } = yield* play([answer(pieces, whole), done], { tools: [say("edit")], options })
        const params = ModelEvent.parseArguments(whole ?? pieces.join(""))
        assert.deepStrictEqual(valuesOf(events).at(-1), params, JSON.stringify(pieces))
      }
    })
  )

  it.effect("stops without an error at text that is no JSON (row 58)", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* play([answer(['{"a": "b', '", oops', ', "c": 1}']), done], {
        tools: [say("edit")],
        options
      })
      assert.strictEqual(exit._tag, "Success")
      assert.deepStrictEqual(valuesOf(events), [{ a: "b" }])
    })
  )

  it("stops at whatever JSON.parse refuses", () => {
    const refused = [
      "[1,]",
      "{a:1}",
      '{"a" 1}',
      "[01]",
      "[1.]",
      "[+1]",
      "[nul]",
      "[1 2]",
      '["\\x"]',
      '["\\u00g0"]',
      '["\n"]',
      "[] []",
      "{}x",
      "[}",
      '{"a":1]',
      "]",
      ",",
      "[,1]",
      '{"a":}',
      "[-]",
      "[truefalse]",
      "[.5]",
      "[1e]",
      '{"a":1,}'
    ]
    for (const each of refused) {
      const parser = new JsonPieces()
      for (const char of `${each} `) parser.add(char)
      assert.isFalse(parser.isWhole, each)
      assert.throws(() => void JSON.parse(each), SyntaxError)
    }
    const parser = new JsonPieces()
    parser.add("[".repeat(maxDepth + 1))
    assert.isFalse((parser.add("]".repeat(maxDepth + 1)), parser.isWhole))
  })

  it.effect(
    "has no changes below names of more than 1,024 characters, and the value at the end (row 58)",
    () =>
      Effect.gen(function* () {
        const name = "n".repeat(2_000)
        const pieces = [
          `{"a":1,"${name}":[`,
          ...Array.from({ length: 500 }, (_, index) => `${index},`),
          "0]}"
        ]
        const { events } = yield* play([answer(pieces), done], { tools: [say("edit")], options })
        const parts = ofTag(events, "PartialValue")
        assert.isBelow(JSON.stringify(parts).length, 20_000)
        const [started] = ofTag(events, "ToolExecutionStart")
        assert.deepStrictEqual(valuesOf(events).at(-1), started?.params)
      })
  )

  it("reads escapes in keys", () => {
    const whole = String.raw`{"\\":1,"\u00e9\"":{"\ud83d\ude00":"\/"}}`
    const keys = { "\\": 1, 'é"': { "😀": "/" } }
    assert.deepStrictEqual([fed([whole]).at(-1), fed([...whole]).at(-1)], [keys, keys])
  })

  it("keeps members named __proto__, and leaves prototypes alone", () => {
    const whole = '{"__proto__": {"polluted": [1, "x"]}, "constructor": {"prototype": {"y": "z"}}}'
    const values = fed([...whole])
    assert.strictEqual(JSON.stringify(values.at(-1)), JSON.stringify(JSON.parse(whole)))
    const foreign = [{ path: ["constructor", "prototype", "y"], set: 1 }]
    assert.deepStrictEqual(AgentEvent.foldValue({}, foreign), {})
    assert.isUndefined(Reflect.get({}, "y"))
  })

  it.effect("voids the values of a retracted answer (row 58)", () =>
    Effect.gen(function* () {
      const broken = ScriptedProvider.turn(
        Step.start,
        ...call(['{"a": "old']).slice(0, 2),
        Step.fail(new ProviderError.Overloaded({ detail: "busy" }))
      )
      const { events } = yield* play([broken, answer(['{"a"', ': "new"}']), done], {
        tools: [say("edit")],
        options,
        around: Retry.layer({ retryTurn: true, schedule: Schedule.recurs(1) })
      })
      const [retracted] = ofTag(events, "MessageRetracted")
      const values = ofTag(events, "PartialValue").map(({ messageId, changes }) => [
        messageId === retracted?.messageId,
        AgentEvent.foldValue(undefined, changes)
      ])
      assert.deepStrictEqual(values, [
        [true, { a: "old" }],
        [false, {}],
        [false, undefined]
      ])
      const voided = ofTag(events, "MessageRetracted").length
      assert.strictEqual(voided, 1)
      const shown = yield* AgentEvent.partials(Stream.fromIterable(events), { every: "50 millis" }).pipe(
        Stream.runCollect
      )
      assert.deepStrictEqual(
        shown.map(({ isRetracted, value }) => [value, isRetracted]),
        [
          [{ a: "old" }, true],
          [{ a: "new" }, false]
        ]
      )
    })
  )
})

const person = Schema.Struct({ name: Schema.String, tags: Schema.Array(Schema.String) })

describe("partialValues of a typed output", () => {
  const read = Effect.fnUntraced(function* <A>(
    output: Schema.Codec<A, unknown>,
    turn: ScriptedProvider.Turn,
    isNative: boolean
  ) {
    const provider = yield* ScriptedProvider.make([turn])
    const layer = isNative
      ? Layer.effect(
          Provider.Provider,
          Effect.map(Provider.Provider, (inner) =>
            Provider.Provider.of({ ...inner, structuredOutput: () => true })
          )
        ).pipe(Layer.provide(provider.layer))
      : provider.layer
    return yield* Loop.stream("hi", { messages: [] }, { model: "m", output, partialValues: true }).pipe(
      Stream.runCollect,
      Effect.provide([layer, ToolRegistry.layer()])
    )
  })

  it.effect("grow in the text of an answer (row 58)", () =>
    Effect.gen(function* () {
      const events = yield* read(
        person,
        ScriptedProvider.text(['{"name": "A', 'da", "tags"', ': ["x', '"]}']),
        true
      )
      assert.deepStrictEqual(valuesOf(events), [{ name: "A" }, { name: "Ada" }, { name: "Ada", tags: ["x"] }])
      assert.deepStrictEqual(valuesOf(events).at(-1), ofTag(events, "Output")[0]?.value)
      for (const part of ofTag(events, "PartialValue")) assert.strictEqual(part.for, "output")
    })
  )

  it.effect("have no object around a value that is none", () =>
    Effect.gen(function* () {
      const events = yield* read(
        Schema.Array(Schema.String),
        ScriptedProvider.text(['{"out', 'put": ["a', 'b", "c"', "]}"]),
        true
      )
      assert.deepStrictEqual(valuesOf(events), [["a"], ["ab", "c"]])
    })
  )

  it.effect("grow in the arguments of the call that gives them", () =>
    Effect.gen(function* () {
      const rawArguments = '{"name":"Ada","tags":[]}'
      const turn = ScriptedProvider.turn(
        Step.start,
        event({ _tag: "ToolCallStart", contentIndex: 0, id: "c1", name: "final_answer" }),
        event({ _tag: "ToolCallDelta", contentIndex: 0, delta: rawArguments.slice(0, 11) }),
        event({ _tag: "ToolCallDelta", contentIndex: 0, delta: rawArguments.slice(11) }),
        event({ _tag: "ToolCallEnd", contentIndex: 0, rawArguments }),
        Step.finish("toolUse")
      )
      const events = yield* read(person, turn, false)
      assert.deepStrictEqual(valuesOf(events), [{ name: "Ad" }, { name: "Ada", tags: [] }])
      assert.deepInclude(ofTag(events, "PartialValue")[0], { for: "output", toolCallId: "c1" })
    })
  )
})

describe("the cost of partialValues", () => {
  const edits = Array.from({ length: 9000 }, (_, line) => ({
    line,
    old: 'lorem "ipsum" dolor',
    new: "é\nsit 😀"
  }))
  const piecesOf = (whole: string, count: number) => {
    const size = Math.ceil(whole.length / count)
    return Array.from({ length: count }, (_, index) => whole.slice(index * size, (index + 1) * size))
  }
  const run = (pieces: ReadonlyArray<string>, partialValues: boolean) =>
    Stream.runDrain(Loop.stream("hi", { messages: [] }, { model: "m", partialValues })).pipe(
      Effect.provide([ScriptedProvider.layer([answer(pieces), done]), ToolRegistry.layer(say("edit"))])
    )

  it.effect("is no step of a fiber that a delta does not take anyway (row 58)", () =>
    Effect.gen(function* () {
      const steps = (isOn: boolean) =>
        Effect.map(
          each((times) => run(piecesOf(JSON.stringify({ a: "x".repeat(4000) }), times), isOn), 100, 900),
          (cost) => cost.steps
        )
      const without = yield* steps(false)
      assert.isAbove(without, 1)
      assert.isAtMost((yield* steps(true)) / without, 1.3)
    })
  )

  it.effect(
    "grows with the length of the arguments alone",
    () =>
      Effect.gen(function* () {
        for (const value of [
          { content: "const x = 1\n".repeat(80_000) },
          { edits },
          [edits.map(({ line }) => line)]
        ]) {
          const pieces = piecesOf(JSON.stringify(value), 20_000)
          const changes: Array<AgentEvent.ValueChange> = []
          const parser = new JsonPieces()
          const parse = Effect.sync(() => pieces.forEach((piece) => changes.push(...parser.add(piece))))
          assert.isBelow(yield* costOf(parse, 200), 200)
          const fold = Effect.sync(() => {
            const draft = new ValueDraft(undefined)
            for (const change of changes) draft.add([change])
            return draft.take()
          })
          assert.isBelow(
            yield* costOf(
              Effect.map(fold, (last) => assert.deepStrictEqual(last, value)),
              1000
            ),
            1000
          )
        }
      }),
    60_000
  )
})

describe("AgentEvent.partials", () => {
  it.effect("emits whole values at a pace, and the last one in any case (row 58)", () =>
    Effect.gen(function* () {
      const letters = [..."abcdefghij"]
      const steps = letters.flatMap((delta) => [
        event({ _tag: "ToolCallDelta", contentIndex: 0, delta }),
        Step.sleep("20 millis")
      ])
      const turn = ScriptedProvider.turn(
        Step.start,
        ...call(['{"a":"']).slice(0, 2),
        ...steps,
        event({ _tag: "ToolCallEnd", contentIndex: 0, rawArguments: '{"a":"abcdefghij"}' }),
        Step.finish("toolUse")
      )
      const provider = yield* ScriptedProvider.make([turn, done])
      const events = Loop.stream("hi", { messages: [] }, { model: "m", partialValues: true })
      const fiber = yield* AgentEvent.partials(events, { every: "50 millis" }).pipe(
        Stream.mapEffect((part) => Effect.map(Clock.currentTimeMillis, (at) => [at, part.value])),
        Stream.runCollect,
        Effect.provide([provider.layer, ToolRegistry.layer(say("edit"))]),
        Effect.forkChild
      )
      for (let ms = 0; ms < 400; ms += 10) yield* TestClock.adjust(10)
      const shown = yield* Fiber.join(fiber)
      assert.isAtMost(shown.length, 6)
      assert.deepStrictEqual(shown.at(-1)?.[1], { a: "abcdefghij" })
      assert.strictEqual(shown[0]?.[0], 50)
    })
  )

  it.effect("never changes a value that it has emitted", () =>
    Effect.gen(function* () {
      const part = (seq: number, changes: ReadonlyArray<AgentEvent.ValueChange>): AgentEvent.AgentEvent => ({
        _tag: "PartialValue",
        runId: "r",
        seq,
        timestamp: 0,
        messageId: "m",
        index: 0,
        for: "arguments",
        changes
      })
      const events = [
        part(1, [{ path: [], set: { a: [{ b: "x" }], c: {} } }]),
        part(2, [{ path: ["a", 0, "b"], append: "y" }]),
        part(3, [{ path: ["a", 1], set: [] }])
      ]
      const fiber = yield* Stream.fromIterable(events).pipe(
        Stream.tap(() => Effect.sleep("1 second")),
        AgentEvent.partials({ every: "1 milli" }),
        Stream.runCollect,
        Effect.forkChild
      )
      for (let second = 0; second < 4; second++) yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        (yield* Fiber.join(fiber)).map(({ value }) => value),
        [
          { a: [{ b: "x" }], c: {} },
          { a: [{ b: "xy" }], c: {} },
          { a: [{ b: "xy" }, []], c: {} }
        ]
      )
    })
  )
})

const isWithinPair = (text: string, at: number): boolean =>
  /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(Math.max(at - 1, 0))) && at > 0
