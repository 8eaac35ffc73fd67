import { assert, describe, it } from "@effect/vitest"
import { EventStreamCodec } from "@smithy/eventstream-codec"
import { Arbitrary, Effect, Schema } from "effect"
import { Framing } from "effect-agent/providers"

const utf8 = {
  to: (bytes: Uint8Array) => new TextDecoder().decode(bytes),
  from: (text: string) => new TextEncoder().encode(text)
}
const codec = new EventStreamCodec(utf8.to, utf8.from)

const message = (event: string, payload: string): Uint8Array =>
  codec.encode({
    headers: {
      ":event-type": { type: "string", value: event },
      ":message-type": { type: "string", value: "event" },
      count: { type: "integer", value: 7 },
      at: { type: "timestamp", value: new Date(0) },
      raw: { type: "binary", value: new Uint8Array([1, 2, 3]) },
      on: { type: "boolean", value: true }
    },
    body: utf8.from(payload)
  })

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array =>
  Uint8Array.from(pieces.flatMap((piece) => [...piece]))

/** The frames of bytes that come in pieces of this size. */
const read = (framing: Framing.Framing, bytes: Uint8Array, size = bytes.length) => {
  const reader = framing.reader()
  const frames: Array<Framing.Frame> = []
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size), frames)
  reader.end(frames)
  return { frames, problem: reader.problem }
}

describe("AWS's event stream", () => {
  it.effect("gives the events that AWS's own codec wrote, in pieces of any size", () =>
    Effect.gen(function* () {
      const arbitrary = Arbitrary.schema(
        Schema.Struct({
          frames: Schema.Array(
            Schema.Struct({ event: Schema.Literals(["", "contentBlockDelta"]), data: Schema.String })
          ),
          size: Schema.Literals([1, 7, 4096])
        })
      )
      const result = yield* Arbitrary.checkEffect(
        arbitrary,
        ({ frames, size }) =>
          Effect.sync(() => {
            const bytes = joined(frames.map(({ data, event }) => message(event, data)))
            const expected = {
              frames: frames.map(({ data, event }) => ({ event, data: utf8.to(utf8.from(data)) }))
            }
            return JSON.stringify(read(Framing.awsEventStream, bytes, size)) === JSON.stringify(expected)
          }),
        { runs: 200, seed: 17 }
      )
      assert.strictEqual(result._tag, "Passed", JSON.stringify(result))
    })
  )

  it("gives an exception as an error, with its type and message", () => {
    const bytes = codec.encode({
      headers: {
        ":message-type": { type: "string", value: "exception" },
        ":exception-type": { type: "string", value: "throttlingException" }
      },
      body: utf8.from('{"message":"Too many requests"}')
    })
    assert.deepStrictEqual(read(Framing.awsEventStream, bytes).frames, [
      { event: "error", data: '{"type":"throttlingException","message":"Too many requests"}' }
    ])
  })

  it("finds each damaged byte, and a stream that ends in the middle of an event", () => {
    const whole = message("contentBlockDelta", '{"delta":{"text":"Hi"}}')
    for (let at = 0; at < whole.length; at++) {
      const damaged = whole.slice()
      damaged[at] = (damaged[at] ?? 0) ^ 0x10
      const { frames, problem } = read(Framing.awsEventStream, damaged)
      assert.deepStrictEqual(frames, [], `byte ${at}`)
      assert.isDefined(problem, `byte ${at}`)
    }
    for (let length = 1; length < whole.length; length++) {
      assert.strictEqual(
        read(Framing.awsEventStream, whole.subarray(0, length)).problem?._tag,
        "StreamTruncated"
      )
    }
  })
})

describe("lines of JSON", () => {
  it("come one by one, in pieces of any size, with the last one unended", () => {
    const bytes = utf8.from('{"text":"Grüße"}\r\n\n{"text":"🎈"}\n{"done":true}')
    for (const size of [1, 3, 100]) {
      assert.deepStrictEqual(
        read(Framing.ndjson, bytes, size).frames.map(({ data }) => data),
        ['{"text":"Grüße"}', '{"text":"🎈"}', '{"done":true}']
      )
    }
  })
})
