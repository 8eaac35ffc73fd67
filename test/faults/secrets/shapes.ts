/**
 * Answers of a hostile server: each gives back what it was sent, in another place and in another spelling.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Language } from "./planted.ts"

/** A request, and how to speak its language. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** All that might be a secret, one after the other. */
  readonly echo: string
  readonly language: Language
}

export interface Shape {
  readonly name: string
  /** The run is cancelled once the request is there: nothing else would end it. */
  readonly isCancelled?: boolean
  readonly answer: (exchange: Exchange) => void
}

/** What was sent, as it was sent and as it was meant. */
export const echoOf = ({ headers, url = "" }: IncomingMessage): string => {
  const values = Object.entries(headers).flatMap(([name, value]) =>
    harmless.test(name) ? [] : [String(value)]
  )
  const parts = values.flatMap((value) => value.split(/[; ]+|(?<=sid|other)=/))
  return [
    ...values,
    ...parts,
    url,
    decodeURIComponent(url),
    ...new URL(url, "http://x").searchParams.values()
  ].join(" ")
}
const harmless = /^(?:host|connection|accept|content-|user-agent|sec-|traceparent|b3|transfer)/

const json = ({ response }: Exchange, status: number, body: unknown, headers = {}) => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}

const refusing = (status: number): Shape => ({
  name: `status ${status}`,
  answer: (exchange) =>
    json(exchange, status, { error: { message: `no: ${exchange.echo}`, type: "t", code: exchange.echo } })
})

/** An answer that has begun, and text of it. */
const begun = ({ language, response }: Exchange): ServerResponse => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const event of beginnings[language]) response.write(`data: ${JSON.stringify(event)}\n\n`)
  return response
}

const beginnings: Readonly<Record<Language, ReadonlyArray<object>>> = {
  chat: [{ choices: [{ index: 0, delta: { role: "assistant", content: "so far" } }] }],
  responses: [
    { type: "response.created", response: { id: "r", model: "m", status: "in_progress" } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { id: "i", type: "message", role: "assistant", content: [] }
    },
    { type: "response.output_text.delta", item_id: "i", output_index: 0, content_index: 0, delta: "so far" }
  ],
  anthropic: [
    {
      type: "message_start",
      message: { id: "m", model: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } }
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "so far" } }
  ],
  google: [{ candidates: [{ index: 0, content: { role: "model", parts: [{ text: "so far" }] } }] }]
}

/** The event by which a language says that it failed. */
const failure = ({ echo, language }: Exchange): object =>
  language === "responses"
    ? {
        type: "response.failed",
        response: { status: "failed", error: { code: "server_error", message: echo } }
      }
    : { type: "error", error: { type: "api_error", code: 500, message: echo } }

const inStream = (name: string, write: (response: ServerResponse, exchange: Exchange) => void): Shape => ({
  name,
  answer: (exchange) => {
    const response = begun(exchange)
    write(response, exchange)
    response.end()
  }
})

const event = (data: string) => `data: ${data}\n\n`

/** JSON as other languages write it. */
const spelled = (text: string, char: RegExp, how: (char: string) => string) =>
  `{"error":{"message":${JSON.stringify(text).replaceAll(char, how)}}}`
const byCode = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
const asEntity = (text: string) => text.replaceAll(/[&<>"'/+=\\%]/g, (char) => `&#${char.charCodeAt(0)};`)
const asNamed = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

export const shapes: ReadonlyArray<Shape> = [
  ...[400, 401, 403, 404, 429, 500, 503, 529].map(refusing),
  {
    name: "plain text",
    answer: ({ echo, response }) => response.writeHead(401, { "content-type": "text/plain" }).end(echo)
  },
  {
    name: "a page",
    answer: ({ echo, response }) =>
      response.writeHead(502, { "content-type": "text/html" }).end(`<p>${asNamed(echo)}`)
  },
  {
    name: "a page of codes",
    answer: ({ echo, response }) =>
      response.writeHead(502, { "content-type": "text/html" }).end(`<p>${asEntity(echo)}`)
  },
  {
    name: "a page that is cut for the error",
    answer: ({ echo, response }) =>
      response
        .writeHead(502, { "content-type": "text/html" })
        .end(`<p>${"x".repeat(4_030)}${echo}${"y".repeat(100_000)}`)
  },
  {
    name: "slashes escaped, as PHP does",
    answer: (each) =>
      json(
        each,
        401,
        spelled(each.echo, /\//g, (char) => `\\${char}`)
      )
  },
  {
    name: "marks escaped, as Go does",
    answer: (each) => json(each, 401, spelled(each.echo, /[&<>]/g, byCode))
  },
  { name: "all escaped", answer: (each) => json(each, 401, spelled(each.echo, /[A-Za-z/+=&<>%]/g, byCode)) },
  {
    name: "twice in JSON",
    answer: (each) => json(each, 500, { error: { message: JSON.stringify({ sent: each.echo }) } })
  },
  {
    name: "encoded for a URL",
    answer: (each) => json(each, 404, { error: { message: encodeURIComponent(each.echo) } })
  },
  {
    name: "a list of faults",
    answer: (each) => json(each, 422, { detail: [{ loc: ["header"], msg: each.echo }] })
  },
  {
    name: "an upstream's words",
    answer: (each) => json(each, 502, { error: { message: "no", metadata: { raw: each.echo } } })
  },
  {
    name: "headers",
    answer: (each) =>
      json(each, 503, "{}", {
        "x-request-id": each.echo,
        "retry-after": each.echo,
        "www-authenticate": each.echo,
        "x-debug": each.echo,
        "set-cookie": each.echo
      })
  },
  {
    name: "the words of the status",
    answer: ({ echo, response }) => response.writeHead(401, echo, { "content-type": "text/plain" }).end()
  },
  {
    name: "a body in pieces",
    answer: ({ echo, response }) => {
      response.writeHead(401, { "content-type": "text/plain" })
      for (const char of echo.match(/.{1,7}/gs) ?? []) response.write(char)
      response.end()
    }
  },
  {
    name: "a redirect to another origin",
    answer: ({ echo, request, response }) => {
      const host = echo.split(" ").find((word) => /^[\w-]{20,60}$/.test(word)) ?? "elsewhere"
      response
        .writeHead(307, { location: `http://${host}.example/${encodeURIComponent(echo)}${request.url}` })
        .end()
    }
  },
  {
    name: "a redirect to itself",
    answer: ({ request, response }) => response.writeHead(302, { location: request.url }).end()
  },
  {
    name: "a page in place of a stream",
    answer: ({ echo, response }) => response.writeHead(200, { "content-type": "text/html" }).end(echo)
  },
  { name: "JSON in place of a stream", answer: (each) => json(each, 200, { error: { message: each.echo } }) },
  {
    name: "text in place of a stream",
    answer: ({ echo, response }) => response.writeHead(200, { "content-type": "text/plain" }).end(echo)
  },
  inStream("an error in the stream", (response, each) =>
    response.write(event(JSON.stringify(failure(each))))
  ),
  inStream("an error by its name", (response, { echo }) => response.write(`event: error\n${event(echo)}`)),
  inStream("an error spelled in another way", (response, { echo }) =>
    response.write(event(spelled(echo, /[A-Za-z/+]/g, byCode)))
  ),
  inStream("no JSON", (response, { echo }) => response.write(event(`{"choices": ${echo}`))),
  inStream("JSON of no event", (response, { echo }) => response.write(event(JSON.stringify(echo)))),
  inStream("members of another shape", (response, { echo }) =>
    response.write(
      event(
        JSON.stringify({
          type: echo,
          choices: echo,
          candidates: echo,
          delta: echo,
          response: echo,
          usage: echo
        })
      )
    )
  ),
  inStream("a reason to end that nobody knows", (response, { echo, language }) =>
    response.write(
      event(
        JSON.stringify(
          language === "chat"
            ? { choices: [{ index: 0, delta: {}, finish_reason: echo }] }
            : language === "google"
              ? { candidates: [{ index: 0, finishReason: echo }] }
              : language === "anthropic"
                ? { type: "message_delta", delta: { stop_reason: echo } }
                : {
                    type: "response.incomplete",
                    response: { status: "incomplete", incomplete_details: { reason: echo } }
                  }
        )
      )
    )
  ),
  inStream("nested too deep", (response, { echo }) =>
    response.write(event(`${"[".repeat(400)}${JSON.stringify(echo)}`))
  ),
  inStream("words between events", (response, { echo }) => response.write(`\nUpstream failed: ${echo}\n\n`)),
  ...[0.3, 0.55, 0.9].map((share) =>
    inStream(`an error that is cut at ${share}`, (response, each) => {
      const data = JSON.stringify(failure(each))
      response.write(`data: ${data.slice(0, data.length * share)}`)
    })
  ),
  {
    name: "a body that is cut",
    answer: ({ echo, response }) => {
      response.writeHead(401, { "content-type": "text/plain", "content-length": "100000" })
      response.write(echo.slice(0, echo.length * 0.55), () => response.destroy())
    }
  },
  {
    name: "a reset in the stream",
    answer: (exchange) => {
      const response = begun(exchange)
      response.write(`data: {"error": ${exchange.echo}`, () => response.destroy())
    }
  },
  { name: "a reset", answer: ({ response }) => response.destroy() },
  {
    name: "no HTTP",
    answer: ({ echo, response }) => response.socket?.end(`HTTP/1.1 ${echo}\r\n${echo}\r\n\r\n`)
  },
  {
    name: "a head that is cut",
    answer: ({ echo, response }) => response.socket?.end(`HTTP/1.1 401 no\r\nx-debug: ${echo}`)
  },
  { name: "silence, cancelled", isCancelled: true, answer: () => {} },
  {
    name: "silence after words, cancelled",
    isCancelled: true,
    answer: (exchange) =>
      void begun(exchange).write(`data: {"error":{"message":${JSON.stringify(exchange.echo)}`)
  }
]
