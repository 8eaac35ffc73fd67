/** Requests to a worker, over connections of their own. */
import { type IncomingMessage, request } from "node:http"

/** The token of the servers of all workers. */
export const token = "chaos"

export interface Asked {
  readonly method?: string
  readonly path: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds without a byte after which the request fails. */
  readonly silence?: number
}

export interface Answer {
  readonly status: number
  readonly json: any
}

/** Opens a response; fails if the worker is gone. */
export const open = (
  url: string,
  { body, headers = {}, method, path, silence = 20_000 }: Asked
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      `${url}${path}`,
      {
        method: method ?? (text === undefined ? "GET" : "POST"),
        agent: false,
        headers: {
          authorization: `Bearer ${token}`,
          ...(text === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        }
      },
      resolve
    )
    sent.setTimeout(silence, () => sent.destroy(new Error("silence")))
    sent.on("error", reject)
    sent.end(text)
  })

/** Sends a request; `undefined` if the worker went away before it had answered. */
export const ask = async (url: string, asked: Asked): Promise<Answer | undefined> => {
  try {
    const response = await open(url, asked)
    const chunks: Array<Buffer> = []
    for await (const chunk of response) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    return { status: response.statusCode ?? 0, json: text.startsWith("{") ? JSON.parse(text) : undefined }
  } catch {
    return undefined
  }
}

export const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))
