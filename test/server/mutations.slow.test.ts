import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ScriptedProvider } from "effect-agent/testing"
import { recorder } from "../behaviour/approving.ts"
import { type Asked, send, serve, token } from "./http.ts"

/** Mulberry32: the same numbers for a seed. */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

const seeds: ReadonlyArray<Asked> = [
  { path: "/health" },
  { path: "/openapi.json" },
  { path: "/sessions?limit=2&cursor=x&query=a" },
  { path: "/sessions", body: '{"sessionId":"a","name":"n","model":"any","system":"s","tools":["remove"]}' },
  { path: "/sessions/s" },
  { path: "/sessions/s/fork", body: '{"entryId":"x"}' },
  { path: "/sessions/s/runs", body: '{"prompt":"hi","when":"queue","options":{"limits":{"maxTurns":2}}}' },
  {
    path: "/sessions/s/runs",
    body: '{"prompt":[{"type":"text","text":"a"}]}',
    headers: { "idempotency-key": "k" }
  },
  { path: "/sessions/s/runs" },
  { path: "/runs/RUN" },
  { path: "/runs/RUN/events?after=100000", headers: { "last-event-id": "100000" } },
  { path: "/runs/RUN/steer", body: '{"message":"m"}' },
  { path: "/runs/RUN/follow-up", body: '{"message":[{"type":"text","text":"m"}]}' },
  { path: "/runs/RUN/cancel", body: '{"reason":"r"}' },
  { path: "/runs/RUN/pause", method: "POST" },
  { path: "/runs/RUN/approvals/x", body: '{"decision":"approve","argumentsHash":"0","params":{"path":"a"}}' },
  { path: "/runs/RUN/questions/x", body: '{"answer":{"a":[1]}}' },
  { path: "/sessions/t", method: "PATCH", body: '{"name":"n","model":"m"}' },
  { path: "/sessions/t", method: "DELETE" }
]

const pieces = [
  "",
  "null",
  "0",
  "-1",
  "1e400",
  '"',
  "{",
  "}",
  "[",
  "]",
  "%00",
  "%ff",
  "..",
  "/",
  "//",
  "?",
  "#",
  "&",
  "=",
  "ä",
  "😀"
]
const methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]

const mutated = (next: () => number, text: string): string => {
  const at = Math.floor(next() * (text.length + 1))
  const length = Math.floor(next() * 6)
  const piece = pieces[Math.floor(next() * pieces.length)] ?? ""
  return text.slice(0, at) + piece + text.slice(at + length)
}

/** A path as a client may write it: Node sends no spaces and no characters beyond Latin-1. */
const written = (path: string): string => `/${path.slice(1).replaceAll(/[^!-~]/gu, "%E2%82")}`

describe("the server", () => {
  it.live(
    "answers mutated requests without an error of its own",
    () =>
      Effect.gen(function* () {
        const script = Array.from({ length: 4000 }, () => ScriptedProvider.text("done"))
        const { port } = yield* serve(script, { tools: [recorder().tool] })
        yield* send(port, { path: "/sessions", body: { sessionId: "s" } })
        const { json } = yield* send(port, { path: "/sessions/s/runs", body: { prompt: "hi" } })
        const next = random(7)
        const faults: Array<string> = []
        const count = Number(process.env["EFFECT_AGENT_MUTATIONS"] ?? 1500)
        for (let index = 0; index < count; index++) {
          const seed = seeds[Math.floor(next() * seeds.length)] ?? seeds[0]
          if (seed === undefined) continue
          let { path, body } = { body: undefined, ...seed }
          path = path.replace("RUN", json.runId)
          const rounds = 1 + Math.floor(next() * 3)
          for (let round = 0; round < rounds; round++) {
            const kind = next()
            if (kind < 0.4) path = mutated(next, path)
            else if (typeof body === "string") body = mutated(next, body)
          }
          const method = next() < 0.1 ? methods[Math.floor(next() * methods.length)] : seed.method
          const asked: Asked = {
            path: written(path),
            headers: { authorization: `Bearer ${token}`, ...seed.headers },
            ...(method === undefined ? {} : { method }),
            ...(body === undefined ? {} : { body })
          }
          const answer = yield* Effect.timeoutOption(send(port, asked), "5 seconds")
          if (answer._tag === "None" || answer.value.status >= 500) {
            faults.push(
              `${JSON.stringify(asked)}: ${answer._tag === "None" ? "no answer" : answer.value.text}`
            )
          }
        }
        assert.deepStrictEqual(faults.slice(0, 5), [])
        assert.strictEqual((yield* send(port, { path: "/health" })).status, 200)
      }),
    60_000
  )
})
