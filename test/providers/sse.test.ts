import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import type { Framing } from "effect-agent/providers"
import { sse } from "../../src/providers/Framing.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

/** The events of a text that arrives cut at these places. */
const read = (text: string, cuts: ReadonlyArray<number> = []) => {
  const all = bytes(text)
  const ends = [...cuts.map((cut) => cut % (all.length + 1)), 0, all.length].sort((a, b) => a - b)
  const reader = sse.reader()
  const events: Array<Framing.Frame> = []
  for (let index = 1; index < ends.length; index++)
    reader.push(all.subarray(ends[index - 1], ends[index]), events)
  reader.end(events)
  return { events, reader }
}

const data = (text: string, cuts?: ReadonlyArray<number>) =>
  read(text, cuts).events.map((event) => event.data)

describe("SseReader", () => {
  it("reads data with and without a space, in all line ends (row 51)", () => {
    assert.deepStrictEqual(data("data: a\n\ndata:b\n\n"), ["a", "b"])
    assert.deepStrictEqual(data("data: a\r\n\r\ndata:b\r\n\r\n"), ["a", "b"])
    assert.deepStrictEqual(data("data: a\r\rdata:b\r\r"), ["a", "b"])
    assert.deepStrictEqual(data("data: a\r\n\ndata:b\n\r\n"), ["a", "b"])
  })

  it("drops a byte order mark, at the start only", () => {
    assert.deepStrictEqual(data("\ufeffdata: a\n\ndata: \ufeffb\n\n"), ["a", "\ufeffb"])
  })

  it("keeps the event's name and joins its lines (row 51)", () => {
    assert.deepStrictEqual(read("event: error\ndata: a\ndata: b\n\ndata: c\n\n").events, [
      { event: "error", data: "a\nb" },
      { event: "", data: "c" }
    ])
  })

  it("ignores comments, ids, retries and events without data (row 51)", () => {
    assert.deepStrictEqual(data(": hi\n\nid: 1\nretry: 5\n\nevent: ping\n\ndata\n\ndata: a\n\n:\n"), ["a"])
  })

  it("gives a last event that nothing ends (row 51)", () => {
    assert.deepStrictEqual(data("data: a\n\ndata: b"), ["a", "b"])
    assert.deepStrictEqual(data("data: a\n\ndata: b\n"), ["a", "b"])
  })

  it("parts JSON that a single newline parts, and no JSON that is one", () => {
    assert.deepStrictEqual(data('data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n\n'), [
      '{"a":1}',
      '{"b":2}',
      "[DONE]"
    ])
    assert.deepStrictEqual(data('data: {"a":[{},\ndata: {}]}\n\n'), ['{"a":[{},\n{}]}'])
  })

  it("gives a body of JSON as one event", () => {
    assert.deepStrictEqual(data('\n{"error":\r\n{"message":"no"}}\n'), ['{"error":\n{"message":"no"}}'])
  })

  it("keeps lines that are no field", () => {
    const { events, reader } = read('data: a\n\n{"error":\n{"message":"no"}}\n')
    assert.deepStrictEqual(events.length, 1)
    assert.deepStrictEqual(JSON.parse(reader.stray), { error: { message: "no" } })
  })

  it("reads a line of megabytes in linear time", () => {
    const long = "x".repeat(4_000_000)
    const cuts = Array.from({ length: 2000 }, (_, index) => index * 2000)
    assert.strictEqual(data(`data: ${long}\n\n`, cuts)[0]?.length, long.length)
  })

  it("stops at a line that is too long", () => {
    const reader = sse.reader()
    const chunk = bytes("x".repeat(1024 * 1024))
    reader.push(bytes("data: "), [])
    for (let count = 0; count < 33; count++) reader.push(chunk, [])
    assert.strictEqual(reader.problem?.detail, "An event is too large")
  })

  it.effect("gives the same events however the bytes are cut (rows 52, 260)", () =>
    Effect.gen(function* () {
      const pieces = [
        "data: ",
        "data:",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "é🌍",
        "{}",
        ": c",
        "event: x\n",
        "id: 1",
        "a"
      ]
      const arbitrary = Arbitrary.schema(
        Schema.Struct({
          pieces: Schema.Array(Schema.Literals(pieces)),
          cuts: Schema.Array(Schema.Natural)
        })
      )
      const result = yield* Arbitrary.checkEffect(
        arbitrary,
        ({ cuts, pieces }) =>
          Effect.sync(() => {
            const text = `data: start\n\n${pieces.join("")}`
            const whole = JSON.stringify(data(text))
            const everyByte = Array.from({ length: bytes(text).length }, (_, index) => index)
            return (
              whole === JSON.stringify(data(text, cuts)) && whole === JSON.stringify(data(text, everyByte))
            )
          }),
        { runs: 300, seed: 7 }
      )
      assert.strictEqual(result._tag, "Passed", JSON.stringify(result))
    })
  )
})
