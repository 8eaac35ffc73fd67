import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "./program.ts"

Program.bundled()

const credentials = `Basic ${Buffer.from("user:p@ssword").toString("base64")}`
const secrets = /p@ssword|p%40ssword|dXNlcj/

/** A proxy for HTTP that also is the server behind it. Says "through" to those who have the password. */
const proxy = Effect.gen(function* () {
  const asked: Array<string | undefined> = []
  const url = yield* Program.server((request, _, response) => {
    asked.push(request.url)
    if (request.headers["proxy-authorization"] === credentials) return Program.says(response, ["through"])
    response.writeHead(407).end(`user:p@ssword is wrong`)
  })
  return { asked, host: new URL(url).host }
})

const openAi = (baseUrl: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: baseUrl })
const model = ["--model", "openai-chat/gpt-4.1", "--verbose"]

describe("the program behind a proxy", { timeout: 90_000 }, () => {
  it.effect("asks its company through it", () =>
    Effect.gen(function* () {
      const { asked, host } = yield* proxy
      const env = { ...openAi("http://api.example/v1"), HTTP_PROXY: `http://user:p%40ssword@${host}` }
      const { code, stderr, stdout } = yield* Program.run([...model, "hi"], { env })
      assert.deepStrictEqual([code, stdout], [0, "through\n"], stderr)
      assert.deepStrictEqual(asked, ["http://api.example/v1/chat/completions"])
      assert.notMatch(stderr, secrets)
    })
  )

  it.effect("asks a server on this machine directly", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, __, response) => Program.says(response, ["direct"]))
      const HTTP_PROXY = "http://user:p%40ssword@127.0.0.1:9"
      const env = { ...openAi(`${url}/v1`), HTTP_PROXY, HTTPS_PROXY: HTTP_PROXY }
      assert.strictEqual((yield* Program.run([...model, "hi"], { env })).stdout, "direct\n")
    })
  )

  it.effect.each([
    [
      "refuses",
      "http://user:wr0ng-p%40ssword@HOST",
      /The proxy http:\/\/127\.0\.0\.1:\d+ of HTTP_PROXY asks for a user and/
    ],
    [
      "is no proxy",
      "http://user:p@ssword@HOST:port",
      /HTTP_PROXY is not the address of a proxy\. Set it to one such as/
    ]
  ] as const)("says what is wrong with one that %s, without its password", ([, address, said]) =>
    Effect.gen(function* () {
      const { host } = yield* proxy
      const env = { ...openAi("http://api.example/v1"), HTTP_PROXY: address.replace("HOST", host) }
      for (const flags of [[], ["--json"]]) {
        const { code, stderr, stdout } = yield* Program.run([...model, ...flags, "hi"], { env })
        assert.strictEqual(code, 1)
        assert.match(stderr, said)
        assert.notMatch(stderr + stdout, /p@ssword|p%40ssword|dXNlcj/)
      }
    })
  )
})
