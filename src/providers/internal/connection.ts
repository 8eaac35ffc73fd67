/**
 * The bytes of one response, and what becomes of the connection they come over.
 *
 * The body of a `fetch` is read directly, which makes a delta a third cheaper; that of any other client as the stream it
 * is.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** Opens a response's body. To be released. `keep`: the client has put the socket away, for another request. */
export const open = (
  response: HttpClientResponse.HttpClientResponse,
  keep: () => void
): Effect.Effect<Connection> => {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase() ?? ""
  const web = Option.getOrUndefined(HttpClientResponse.toWeb(response))
  if (web !== undefined) {
    // `fetch` decodes what it hands out.
    const isDecoded = encoding.split(/\s*,\s*/).every((name) => byFetch.has(name))
    return Effect.succeed(new Connection(response, web.body?.getReader(), isDecoded, keep))
  }
  const decompression = decompressionOf(encoding)
  const isDecoded = decompression !== undefined || unencoded.has(encoding)
  const { stream } = response
  const bytes =
    decompression === undefined
      ? Stream.toReadableStreamEffect(stream)
      : Effect.map(
          Stream.toReadableStreamEffect(Stream.map(stream, (part) => Uint8Array.from(part))),
          (encoded) => encoded.pipeThrough(decompression)
        )
  return Effect.map(bytes, (body) => new Connection(response, body.getReader(), isDecoded, keep))
}

/** Other clients than `fetch` leave the decoding to their callers, and so ask for no encoding. Some servers encode all the same. */
const decompressionOf = (encoding: string): DecompressionStream | undefined => {
  const format = formats[encoding]
  try {
    return format === undefined ? undefined : runtime.decompression(format)
  } catch {
    return undefined
  }
}

/** Runtimes know more formats than the types of browsers do, or fewer: then they throw. */
interface Runtime {
  decompression(format: string): DecompressionStream
}
const runtime: Runtime = { decompression: (format: CompressionFormat) => new DecompressionStream(format) }

const formats: Readonly<Record<string, string>> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  deflate: "deflate",
  br: "brotli"
}

const unencoded: ReadonlySet<string> = new Set(["", "identity"])
const byFetch: ReadonlySet<string> = new Set([...unencoded, ...Object.keys(formats), "zstd"])

export class Connection {
  readonly response: HttpClientResponse.HttpClientResponse
  readonly reader: Reader | undefined
  /** What the reader gives is what the server meant, and no encoding of it that is not known here. */
  readonly isDecoded: boolean
  /** Nothing comes any more. */
  isEnded: boolean
  /** Waits for the end of a body of which all that is of use has come. */
  private rest: Promise<void> | undefined = undefined
  private readonly keep: () => void

  constructor(
    response: HttpClientResponse.HttpClientResponse,
    reader: Reader | undefined,
    isDecoded: boolean,
    keep: () => void
  ) {
    this.response = response
    this.reader = reader
    this.isDecoded = isDecoded
    this.isEnded = reader === undefined
    this.keep = keep
  }

  /** The body has been read to its end. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    if (!/\bclose\b/i.test(this.response.headers["connection"] ?? "")) this.keep()
  }

  /** Closes the socket at once. */
  cancel(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.reader?.cancel().catch(() => {})
  }

  /** All that is of use has come. A server that now ends the body, as most do, can be asked over it again. */
  finish(): void {
    let size = 0
    this.rest ??= this.each((bytes) => (size += bytes.length) < maxRest).then(() => this.cancel())
  }

  /** Nobody reads any more. */
  get release(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { rest } = this
      if (this.isEnded) return Effect.void
      if (rest === undefined) return Effect.sync(() => this.cancel())
      const orElse = () => Effect.sync(() => this.cancel())
      const given = Effect.timeoutOrElse(
        Effect.promise(() => rest),
        { duration: grace, orElse }
      )
      return Effect.asVoid(Effect.forkDetach(given))
    })
  }

  /** The start of the body as text, `limit` bytes or a little more; what there is of it, if it breaks or cannot be read. */
  text(limit: number): Effect.Effect<string> {
    return Effect.promise(async () => {
      if (!this.isDecoded) return ""
      const decoder = new TextDecoder()
      let text = ""
      let size = 0
      await this.each((bytes) => {
        text += decoder.decode(bytes, { stream: true })
        size += bytes.length
        return size < limit
      })
      return text
    })
  }

  /** Reads on as long as `more` says so. */
  private async each(more: (bytes: Uint8Array) => boolean): Promise<void> {
    try {
      while (!this.isEnded && this.reader !== undefined) {
        const { done, value } = await this.reader.read()
        if (done) this.end()
        else if (!more(value)) return
      }
    } catch {
      this.isEnded = true
    }
  }
}

/** Servers end the body within one round trip after the last event. */
const grace = Duration.millis(100)
/** Bytes after the last event: more is a server that does not end. */
const maxRest = 64 * 1024
