import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { serve, stream } from "../providers/server.ts"
import { answer, block, bytes, heardOf, play, providerOn, told } from "./session.ts"
import type { Piece, Vendor } from "./vendors.ts"
import { anthropic, google, openAi, responses, vendors } from "./vendors.ts"

const hello = { text: ["Hel", "lo", ", ", "you"] }

/** A client whose requests are answered with these bodies. */
const answering = (next: () => string) =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(next(), { headers })))
    )
  )

const headers = { "content-type": "text/event-stream" }

/** What a field of an answer may be, if it is not what it should be. */
const junk: ReadonlyArray<unknown> = [
  null,
  7,
  -1,
  1e9,
  true,
  "none",
  [],
  {},
  [null],
  [[]],
  ["x"],
  { index: 1e9 }
]

/** An event like one of this answer, and the path to each field in it, with junk in its place. */
const spoiled = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> =>
  pieces.flatMap((piece) =>
    pathsOf(piece.data).flatMap((path) =>
      junk.map((value): Piece => ({ ...piece, kind: "frame", data: withAt(piece.data, path, value) }))
    )
  )

const pathsOf = (data: unknown): ReadonlyArray<ReadonlyArray<string>> =>
  typeof data === "object" && data !== null
    ? Object.entries(data).flatMap(([member, value]) => [
        [member],
        ...pathsOf(value).map((path) => [member, ...path])
      ])
    : []

const withAt = (data: unknown, [member, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (member === undefined) return value
  if (Array.isArray(data))
    return data.map((item, index) => (String(index) === member ? withAt(item, rest, value) : item))
  return typeof data === "object" && data !== null
    ? { ...data, [member]: withAt(Reflect.get(data, member), rest, value) }
    : data
}

/** Content in the wrong type: a text would be lost, if it were ignored. */
const lossy: ReadonlyMap<Vendor, ReadonlyArray<object>> = new Map<Vendor, ReadonlyArray<object>>([
  [
    openAi,
    [
      { choices: [{ index: 0, delta: { content: 7 } }] },
      { choices: [{ index: 0, delta: { tool_calls: "x" } }] }
    ]
  ],
  [
    anthropic,
    [
      { type: "content_block_delta", index: 0, delta: null },
      { type: "content_block_start", index: 1, content_block: "x" }
    ]
  ],
  [responses, []],
  [google, [{ candidates: "none" }, { candidates: [{ index: 0, content: "x" }] }]]
])

describe.each(vendors)("$name", (vendor) => {
  const pieces = vendor.answer(hello)
  const second = pieces.findIndex(({ kind }) => kind === "text") + 1

  it.effect(
    "F060: a delta that is no JSON fails the answer, with little of it, and nothing is left out",
    () =>
      Effect.gen(function* () {
        const secret = Array.from({ length: 1000 }, (_, index) => index).join(" ")
        for (const garbage of ["{not json", `{"a": ${secret}`, "<html>", '{"a":1}}', "undefined"]) {
          const body = [
            ...pieces.slice(0, second),
            { kind: "text" as const, data: garbage },
            ...pieces.slice(second + 1)
          ]
          const server = yield* serve((response) => answer(response, body))
          const { last, reason, text } = yield* play(vendor, server)
          assert.strictEqual(told(reason), "Protocol badJson", garbage.slice(0, 20))
          assert.include(reason?.detail, garbage.slice(0, 40))
          assert.notInclude(JSON.stringify(reason), garbage.padEnd(201).slice(0, 201))
          assert.isAtMost(reason?.detail.length ?? 0, 403)
          assert.deepStrictEqual([text, last?.stopReason], ["Hel", "error"])
          assert.strictEqual(server.requests.length, 1)
        }
      }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect(
    "F062: a field of any type in any place is passed over, or a typed failure, and nothing else",
    () =>
      Effect.gen(function* () {
        const calls = [{ id: "call_1", name: "echo", json: ['{"text":', '"ping"}'] }]
        const strange = spoiled(vendor.answer({ thinking: ["Hm"], text: ["Hel", "lo"], calls }))
        assert.isAbove(strange.length, 300)
        let next = 0
        const bodyOf = (piece: Piece) => bytes([...pieces.slice(0, second), piece, ...pieces.slice(second)])
        const provider = yield* providerOn(vendor, "http://vendor.test/v1").pipe(
          Effect.provide(answering(() => strange.slice(next++, next).map(bodyOf).join("")))
        )
        for (const piece of strange) {
          // A defect would fail the test, and a giant array end the process.
          const { events, reason } = yield* heardOf(provider)
          assert.match(
            told(reason) ?? "",
            /^(Protocol \w+|StreamTruncated|ServerError|Overloaded|)$/,
            block(piece)
          )
          assert.isBelow(events.length, 40)
          assert.strictEqual(events.at(-1)?._tag === "Finish", reason === undefined, block(piece))
          for (const event of events) {
            if ("contentIndex" in event) assert.isBelow(event.contentIndex, 10)
          }
        }
      })
  )

  it.effect("F062: content that cannot be read is a failure of shape, as it would be lost", () =>
    Effect.gen(function* () {
      for (const data of lossy.get(vendor) ?? []) {
        const body = bytes([...pieces.slice(0, second), { kind: "text", data }, ...pieces.slice(second)])
        const server = yield* serve((response) => stream(response).end(body))
        const { reason, text } = yield* play(vendor, server)
        assert.deepStrictEqual([told(reason), text], ["Protocol badShape", "Hel"], JSON.stringify(data))
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
