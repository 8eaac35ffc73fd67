import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import type { ServerResponse } from "node:http"
import { serve, stream } from "../providers/server.ts"
import { block, bytes, hear } from "./session.ts"
import type { Piece, Vendor } from "./vendors.ts"
import { anthropic, google, openAi, responses, vendors } from "./vendors.ts"

const said = {
  thinking: ["Hm, ", "日本"],
  text: ["Hello, ", "wörld ", "🌍! ", "Привет", ", 世", "界."],
  calls: [{ id: "call_a", name: "note", json: ['{"text":"Grü', 'ße 👋\\n"}'] }]
}

/** What is heard of this body, which must be a whole answer. */
const heardOf = Effect.fnUntraced(function* (vendor: Vendor, body: string) {
  return yield* heardFrom(vendor, (response) => stream(response).end(body))
})

const heardFrom = Effect.fnUntraced(function* (vendor: Vendor, respond: (response: ServerResponse) => void) {
  const { events, reason } = yield* hear(vendor, yield* serve(respond))
  assert.isUndefined(reason)
  assert.strictEqual(events.at(-1)?._tag, "Finish")
  // The headers are those of each response, with its time.
  return events.map((event) => (event._tag === "Start" ? { ...event, headers: {} } : event))
})

/** Sends each of these pieces by itself. */
const inPieces = (response: ServerResponse, pieces: ReadonlyArray<Uint8Array>) => {
  response.socket?.setNoDelay(true)
  stream(response)
  const next = (index: number) => {
    const piece = pieces[index]
    if (piece === undefined) response.end()
    else response.write(piece, () => setImmediate(next, index + 1))
  }
  next(0)
}

const cut = (body: Uint8Array, isCut: (byte: number, index: number) => boolean) => {
  const ends = [...body.keys()].filter((index) => index > 0 && isCut(body[index] ?? 0, index))
  return [0, ...ends].map((start, index) => body.subarray(start, ends[index] ?? body.length))
}

/** Events and members that no language has. */
const unknown: ReadonlyMap<Vendor, ReadonlyArray<unknown>> = new Map<Vendor, ReadonlyArray<unknown>>([
  [openAi, [{ id: "x", object: "vendor.notice", choices: [], notice: { deep: [1] } }, {}]],
  [
    anthropic,
    [
      { type: "vendor_notice", z: 1 },
      { type: "content_block_delta", index: 0, delta: { type: "x" } }
    ]
  ],
  [
    responses,
    [
      { type: "response.vendor.notice", z: 1 },
      { type: "keepalive", sequence_number: 3 }
    ]
  ],
  [google, [{ vendorNotice: { z: 1 } }, { candidates: [] }, {}]]
])

const withMore = ({ data, ...piece }: Piece): Piece => ({
  ...piece,
  data: typeof data === "object" ? { ...data, x_new_member: { a: [null] } } : data
})

describe.each(vendors)("$name", (vendor) => {
  const pieces = vendor.answer(said)
  const body = bytes(pieces)
  const plain = heardOf(vendor, body)
  const same = Effect.fnUntraced(function* (written: string, what = "") {
    assert.deepStrictEqual(yield* heardOf(vendor, written), yield* plain, what)
  })

  it.effect("F031: lines may end in CRLF, or CR", () =>
    Effect.gen(function* () {
      yield* same(body.replaceAll("\n", "\r\n"), "CRLF")
      yield* same(body.replaceAll("\n", "\r"), "CR")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F034: a byte order mark may come first", () =>
    same(`\ufeff${body}`).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F035: comments, ids, retries, unknown fields and missing spaces change nothing", () =>
    Effect.gen(function* () {
      const each = (write: (text: string, index: number) => string) => pieces.map(block).map(write).join("")
      yield* same(
        each((text) => `: OPENROUTER PROCESSING\n\n${text}:\n`),
        "comments"
      )
      yield* same(
        each((text) => `:\n\n: ping - 2026-11-22\n${text}`),
        "keep-alives"
      )
      yield* same(
        each((text, index) => `id: ${index}\nretry: 100\nfoo: bar\nbaz\n${text}`),
        "fields"
      )
      yield* same(body.replace(/^(data|event): /gm, "$1:"), "no space")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F038: text is exact however its bytes are cut", () =>
    Effect.gen(function* () {
      const all = new TextEncoder().encode(body)
      const inside = cut(all, (byte) => (byte & 0xc0) === 0x80)
      const single = cut(all, () => true)
      for (const client of [FetchHttpClient.layer, NodeHttpClient.layerUndici, NodeHttp.layer]) {
        for (const parts of [inside, single, [all]]) {
          const heard = yield* heardFrom(vendor, (response) => inPieces(response, parts)).pipe(
            Effect.provide(client)
          )
          assert.deepStrictEqual(heard, yield* Effect.provide(plain, client))
          assert.notInclude(JSON.stringify(heard), "\ufffd")
        }
      }
      const text = (yield* Effect.provide(plain, FetchHttpClient.layer)).map((event) =>
        event._tag === "TextDelta" ? event.delta : ""
      )
      assert.strictEqual(text.join(""), said.text.join(""))
    })
  )

  it.effect("F042: events and members that nobody knows are left out, and are no failure", () =>
    Effect.gen(function* () {
      for (const data of unknown.get(vendor) ?? []) {
        const notice = block({ kind: "frame", name: "vendor_notice", data })
        yield* same(pieces.map(block).join(notice), JSON.stringify(data))
      }
      yield* same(bytes(pieces.map(withMore)), "members")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F044: the label of a stream does not matter, with any vendor", () =>
    Effect.gen(function* () {
      for (const type of ["text/plain", "application/octet-stream", "application/json", undefined]) {
        const heard = yield* heardFrom(vendor, (response) => {
          response.writeHead(200, type === undefined ? {} : { "content-type": type }).end(body)
        })
        assert.deepStrictEqual(heard, yield* plain, type ?? "none")
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})
