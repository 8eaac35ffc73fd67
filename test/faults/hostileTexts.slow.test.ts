import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { AiError } from "effect/ai"
import * as ModelCall from "../../src/ai/internal/ModelCall.ts"
import { Arguments } from "../../src/providers/internal/gemini/parts.ts"
import * as CallArguments from "../../src/providers/internal/writing.ts"
import * as CallId from "../../src/providers/internal/writing.ts"
import * as CallName from "../../src/providers/internal/writing.ts"
import { common } from "../../src/providers/internal/openAiChat/compat.ts"
import * as HttpConnection from "../../src/http/HttpConnection.ts"
import * as Failure from "../../src/providers/internal/reading.ts"
import * as FailureText from "../../src/internal/failureText.ts"
import * as Json from "../../src/providers/internal/json.ts"
import { nestsTooDeep } from "../../src/internal/json.ts"
import { parseArguments } from "../../src/ModelEvent.ts"
import { anthropicMessages } from "../../src/providers/internal/anthropic/protocol.ts"
import { googleGenerate } from "../../src/providers/internal/gemini/protocol.ts"
import { openAiChat } from "../../src/providers/internal/openAiChat/protocol.ts"
import { openAiResponses } from "../../src/providers/internal/openAiResponses/protocol.ts"
import type { Protocol } from "../../src/providers/Protocol.ts"
import { answerOf } from "../providers/reader.ts"
import * as VendorFailure from "../../src/http/VendorFailure.ts"
import * as Secrets from "../../src/providers/internal/secrets.ts"
import { costOf } from "../tools/stretch.ts"
import * as VendorErrors from "../../src/http/VendorErrors.ts"
import * as VendorText from "../../src/http/VendorText.ts"

/** What patterns stumble over, again and again: 256 kB of it, with something else behind it. */
const units = [
  [" ", "\n", "\r\n", "\t", "\n at ", "\n    at a:1:2", ":1", "0", "1", "1 ", "9,", "1s ", "a", "é", "\0"],
  ['"', "'", "`", "\\", "\\\\", '\\"', "\\u0041", "\\ud800", "\ud800", "\\n", "&", "&amp;", "&#", "&#0"],
  ["&#x", "&lt", "%", "%25", "%2525", "%C3", "<", ">", "[", "]", "[[", "{", "}", '{"a":', "[]", "['", '["'],
  [".", "=", "-", "_", ",", ";", "data:", "data: \n", "event:", "id", ": ", "Bearer ", "sk-", "sk-secret-0"],
  ["retry", "retry ", "retry in ", "reset after 1 ", "try again ", "ratelimit", "x-ratelimit-reset"],
  ["request too large ", "first 1 tokens when context ", "maximum context length is 1", "exceed", "context"],
  [
    "maximum prompt length is 1 ",
    "contains 1 tokens",
    "too large for ",
    "model",
    "model ",
    "exceeded your x"
  ],
  [
    "context window ",
    "longer than",
    "insufficient ",
    "overloaded",
    "invalid header",
    "bad port",
    "ERR_INVALID_"
  ]
].flat()
const size = 256 * 1024
const texts = units.map((unit) => [JSON.stringify(unit), unit.repeat(size / unit.length)] as const)

const redact = Secrets.make(
  [Redacted.make("sk-secret-0123456789")],
  { authorization: "Bearer sk-secret-0123456789", cookie: "a=bcdefghijk; b=lmnopqrstuv" },
  "https://user:pw@acme.test/v1?key=k1"
)

const call = { model: "m-1", seed: "s1" }

const answering = (protocol: Protocol) => (bytes: string) => {
  const answer = answerOf(protocol, call, redact)
  answer.push(new TextEncoder().encode(bytes))
  answer.end()
  answer.take()
}
const wires = [
  ["Chat Completions", answering(openAiChat("acme", common))],
  ["Responses", answering(openAiResponses("acme"))],
  ["Messages", answering(anthropicMessages("acme"))],
  ["Gemini", answering(googleGenerate("acme"))]
] as const

/** A reader of each wire, of the bytes that a text is put into. */
const onWires = (name: string, bytesOf: (text: string) => string) =>
  wires.map(([wire, read]) => [`${name} (${wire})`, (text: string) => read(bytesOf(text))] as const)

/** As much of a text as is 256 kB in JSON. */
const inJson = (text: string): string =>
  text.slice(0, Math.floor((size * text.length) / JSON.stringify(text).length))

const refused = (body: unknown, headers = {}) =>
  Failure.ofResponse({ status: 400, headers, body: JSON.stringify(body), model: "m-1", now: 0 })

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`

/** Everything that reads a text of a server, of a model or of a tool. */
const readers: ReadonlyArray<readonly [name: string, read: (text: string) => unknown]> = [
  ["the message of a refusal", (text) => refused({ error: { message: text } })],
  [
    "the code of a refusal",
    (text) => refused({ error: { message: "m", code: text, type: text, status: text } })
  ],
  [
    "a refusal that is no JSON",
    (body) => Failure.ofResponse({ status: 500, headers: {}, body, model: "m", now: 0 })
  ],
  ["the detail of a refusal", (text) => refused({ detail: [text] })],
  ["an upstream's words", (text) => refused({ error: { message: text, metadata: { raw: text } } })],
  [
    "an upstream's headers",
    (text) => refused({ error: { metadata: { headers: { "retry-after": text, [text]: text } } } })
  ],
  [
    "the details of a refusal",
    (text) => refused({ error: { details: [{ retryDelay: text, reason: text }] } })
  ],
  [
    "a header",
    (text) => refused({}, { "retry-after": text, "x-ratelimit-reset": text, "x-ratelimit-remaining": "0" })
  ],
  ["a wait in words", (text) => VendorFailure.retryAfter({}, undefined, `retry in ${text}`, 0)],
  ["an overflow in words", (text) => VendorErrors.overflowIn(text)],
  ["an error of a client", (text) => HttpConnection.reason(new Error(text), "http://acme.test", redact)],
  ["secrets", redact],
  ["keys of vendors", VendorText.cutOut],
  ["a failure of a tool", (text) => FailureText.of(new Error(text))],
  ["a failure of a tool that is no error", (text) => FailureText.of({ said: text, [text]: 1 })],
  ["the first line of a failure", FailureText.firstLine],
  ["an error of effect/ai", (text) => ModelCall.fromUnknown(new Error(text))],
  [
    "an error of effect/ai with its body",
    (description) =>
      ModelCall.fromAiError(
        AiError.make({ module: "m", method: "m", reason: new AiError.InvalidRequestError({ description }) })
      )
  ],
  ["arguments", parseArguments],
  ["arguments that go back", CallArguments.argumentsText],
  ["JSON", Json.parseShallow],
  ["JSON that is written", (text) => Json.encode({ text, more: `${text}\ud800` })],
  ["the depth of JSON", (text) => nestsTooDeep(`"${text}`)],
  ["an id that goes back", (text) => CallId.fit(text, { pattern: /^[\w-]{1,40}$/, length: 32 })],
  ["a name that goes back", (text) => CallName.nameFor(text, 64)],
  ["the path of a value", (jsonPath) => new Arguments().add({ jsonPath: `$${jsonPath}`, stringValue: "x" })],
  ["a value", (stringValue) => new Arguments().add({ jsonPath: "$.a", stringValue })],
  ...onWires("an event stream", (text) => `${text}\n\n`),
  ...onWires("the data of an event", (text) => `data: ${text}\n\n`),
  ...onWires("an event of that name", (text) => `event: ${text}\ndata: {}\n\n`),
  ...onWires("an error by its name", (text) => `event: error\ndata: ${text}\n\n`),
  ...onWires("an error in the stream", (text) => event({ error: { message: inJson(text) } })),
  ...onWires("the code of an error in the stream", (text) =>
    event({ error: { message: "m", code: inJson(text) } })
  ),
  ...onWires("words between events", (text) => `oops ${text}\n\n`),
  ...onWires("the type of an event", (text) => event({ type: inJson(text) })),
  ...onWires("the content of an event", (text) =>
    event({
      choices: [{ delta: { content: inJson(text) } }],
      candidates: [{ content: { parts: [{ text: inJson(text) }] } }]
    })
  ),
  ...onWires("the end of an answer", (text) =>
    event({
      choices: [{ delta: {}, finish_reason: inJson(text) }],
      candidates: [{ finishReason: inJson(text) }]
    })
  )
]

/** Milliseconds of this thread, however busy the machine is. */
const timeOf = (run: () => unknown, bound: number): number => Effect.runSync(costOf(Effect.sync(run), bound))

/** Milliseconds for which a text may hold the process up. */
const bound = 100

/** The first time is the compiler's too. */
const timeAtBest = (run: () => unknown): number => {
  let best = Infinity
  for (let tries = 0; tries < 5 && best > bound; tries++) best = Math.min(best, timeOf(run, bound))
  return best
}

describe("256 kB of anything", () => {
  it.each(readers)("does not stop the process: %s", (_, read) => {
    const slow = texts.flatMap(([name, text]) => {
      const time = timeAtBest(() => read(`x${text} !`))
      // Readers of JSON write the text up to three times before they read it. Lone surrogates take long to write.
      const own = time > bound ? timeOf(() => JSON.stringify([text, text, text]), bound) : 0
      return time - own > bound ? [`${name}: ${Math.round(time)} ms`] : []
    })
    assert.deepStrictEqual(slow, [])
  })

  it.each([
    ["a wait in words", (text: string) => VendorFailure.retryAfter({}, undefined, text, 0)],
    ["an overflow in words", (text: string) => VendorErrors.overflowIn(text)]
  ] as const)("is searched in 20 ms: %s", (_, read) => {
    for (const [name, text] of texts) {
      read(text)
      assert.isBelow(Math.min(...[1, 2, 3, 4, 5].map(() => timeOf(() => read(text), 20))), 20, name)
    }
  })
})
