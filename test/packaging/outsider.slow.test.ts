import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cpSync, writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import * as Published from "../faults/published.ts"
import * as Server from "../providers/server.ts"
import { nodes } from "./nodes.ts"
import * as Project from "./project.ts"

const home = Project.folder("outsider")

/** Prints the run of the agent with a provider of `vendor.ts` or `ollama.ts`. */
const main = `
  import { ask } from "./ask.ts"
  const [file, url, options] = process.argv.slice(2)
  const { layer } = await import("./" + file)
  console.log(JSON.stringify(await ask(layer(url), JSON.parse(options))))`

beforeAll(async () => {
  await Project.install(home, ["effect", "aws4fetch"])
  cpSync(join(import.meta.dirname, "outsider"), home, { recursive: true })
  writeFileSync(join(home, "main.mjs"), main)
  const compilerOptions = { ...Project.strict, skipLibCheck: false, types: [] }
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
}, 240_000)
afterAll(() => Project.remove(home), 240_000)

type Handler = Parameters<typeof Server.serve>[0]

/** The report of a run with the provider of a file, and the requests that the server received. */
const run = Effect.fnUntraced(function* (node: string, file: string, handler: Handler, options: object = {}) {
  const { baseUrl, requests } = yield* Server.serve(handler)
  const args = ["--disable-warning=ExperimentalWarning", "main.mjs", file, baseUrl, JSON.stringify(options)]
  const said = yield* Effect.promise(() => Published.run(node, args, { cwd: home }))
  assert.strictEqual(said.stderr, "")
  const report: unknown = JSON.parse(said.stdout)
  return { report, bodies: requests.map(({ body }) => (body === "" ? {} : JSON.parse(body))), requests }
}, Effect.scoped)

const lines = (response: ServerResponse, ...all: ReadonlyArray<object>) =>
  response
    .writeHead(200, { "content-type": "application/x-ndjson" })
    .end(all.map((line) => `${JSON.stringify({ model: "small", ...line })}\n`).join(""))

const said = (message: object) => ({ message: { role: "assistant", content: "", ...message }, done: false })
const isDone = { message: { role: "assistant", content: "" }, done: true, done_reason: "stop" }
const counted = { ...isDone, prompt_eval_count: 30, eval_count: 10 }
const coat = ["Do I need a coat in Oslo?", "", "4 °C and rain in Oslo", "Yes, a coat."]

const ollama: Handler = (response, _seen, count) =>
  count === 1
    ? lines(
        response,
        said({ thinking: "The weather " }),
        said({ thinking: "decides." }),
        said({ tool_calls: [{ function: { name: "weather", arguments: { city: "Oslo" } } }] }),
        counted
      )
    : lines(response, said({ content: "Yes, " }), said({ content: "a coat." }), counted)

const chunk = (delta: object, finish: string | null = null) => ({
  id: "chatcmpl-1",
  choices: [{ index: 0, delta, finish_reason: finish }]
})
const call = { index: 0, id: "call_1", function: { name: "weather", arguments: '{"city":"Oslo"}' } }

/** Issues tokens, accepts the second one, and answers with `answer`. */
const vendor =
  (answer: (response: ServerResponse, count: number) => void): Handler =>
  (response, { headers, url }, count) => {
    if (url === "/v1/token") Server.refuse(response, 200, { token: `acme-token-of-request-${count}` })
    else if (headers["x-acme-token"] === "acme-token-of-request-1")
      Server.refuse(response, 401, { error: { message: "The token is revoked" } })
    else answer(response, count)
  }

const chat = (response: ServerResponse, count: number) =>
  Server.stream(response).end(
    Server.events(
      ...(count === 4
        ? [chunk({ tool_calls: [call] }), chunk({}, "tool_calls")]
        : [chunk({ content: "Yes, a coat." }), chunk({}, "stop")]),
      "[DONE]"
    )
  )

describe("a project that has the package alone", { timeout: 60_000 }, () => {
  it.each(Project.compilers)("compiles a protocol and a vendor of its own, by $name", async ({ tsc }) => {
    const { stdout } = await Published.run(process.execPath, [tsc, "-p", "."], { cwd: home })
    const ours = stdout.split("\n").filter((line) => line.includes("error TS") && !line.includes("/effect/"))
    assert.deepStrictEqual(ours, [])
  })

  describe.each(nodes)("on $name", ({ path }) => {
    it.live("runs an agent with a protocol of its own", () =>
      Effect.gen(function* () {
        const options = { thinkingLevel: "high", maxTokens: 100, logprobs: 2 }
        const { bodies, report, requests } = yield* run(path, "ollama.ts", ollama, options)
        assert.deepStrictEqual(report, { texts: coat, thinking: ["The weather decides."], tokens: 80 })
        assert.deepStrictEqual(
          requests.map(({ headers, url }) => [url, headers.accept]),
          Array(2).fill(["/v1/api/chat", "application/x-ndjson"])
        )
        const [, second] = bodies
        assert.isTrue(second.think)
        assert.deepStrictEqual(second.options, { num_predict: 100 })
        assert.deepStrictEqual(second.messages.slice(2), [
          {
            role: "assistant",
            content: "",
            thinking: "The weather decides.",
            tool_calls: [{ function: { name: "weather", arguments: { city: "Oslo" } } }]
          },
          { role: "tool", content: coat[2], tool_name: "weather", images: [] }
        ])
      })
    )

    it.live("fails with the reasons of a protocol of its own", () =>
      Effect.gen(function* () {
        const fails = (handler: Handler) =>
          Effect.map(run(path, "ollama.ts", handler), ({ report }) => report)
        const limited = yield* fails((response) =>
          Server.refuse(response, 429, { error: "too many requests" })
        )
        assert.include(limited, { failure: "RateLimited" })
        const cut = yield* fails((response) => {
          response.writeHead(200, { "content-type": "application/x-ndjson" })
          response.write(`${JSON.stringify({ model: "small", ...said({ content: "Yes" }) })}\n{"mod`, () =>
            response.destroy()
          )
        })
        assert.include(cut, { failure: "StreamTruncated" })
        const ended = yield* fails((response) => lines(response, said({ content: "Yes" })))
        assert.include(ended, { failure: "StreamTruncated" })
        const late = yield* fails((response) =>
          lines(response, said({ content: "Yes" }), { error: "overloaded" })
        )
        assert.include(late, { failure: "Overloaded" })
      })
    )

    it.live("runs an agent with a vendor whose tokens expire", () =>
      Effect.gen(function* () {
        const { report, requests } = yield* run(path, "vendor.ts", vendor(chat))
        assert.deepStrictEqual(report, { texts: coat, thinking: [], tokens: 0 })
        assert.deepStrictEqual(
          requests.map(({ headers, url }) => [url, headers["x-acme-token"]]),
          [
            ["/v1/token", undefined],
            ["/v1/models/small/chat", "acme-token-of-request-1"],
            ["/v1/token", undefined],
            ["/v1/models/small/chat", "acme-token-of-request-3"],
            ["/v1/models/small/chat", "acme-token-of-request-3"]
          ]
        )
      })
    )

    it.live("fails with the reasons of a vendor", () =>
      Effect.gen(function* () {
        const fails = (answer: (response: ServerResponse) => void) =>
          Effect.map(run(path, "vendor.ts", vendor(answer)), ({ report }) => report)
        const limited = yield* fails((response) =>
          Server.refuse(response, 429, { error: { message: "acme-token-of-request-3 asks too much" } })
        )
        assert.include(limited, { failure: "RateLimited" })
        assert.notInclude(JSON.stringify(limited), "acme-token")
        const cut = yield* fails((response) =>
          Server.stream(response).write(Server.events(chunk({ content: "Yes" })), () => response.destroy())
        )
        assert.include(cut, { failure: "StreamTruncated" })
      })
    )
  })
})
