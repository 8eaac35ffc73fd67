/**
 * The decoded bytes of a response body.
 *
 * `fetch` decodes a compressed body. Other clients leave that to their callers and request no encoding, but some servers
 * compress without a request for it.
 */
import * as Effect from "effect/Effect"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

export interface Body {
  /** `false` if the body has an encoding that this module does not know, so that `bytes` cannot be read. */
  readonly isDecoded: boolean
  /** The bytes after decoding. */
  readonly bytes: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>
}

type Response = HttpClientResponse.HttpClientResponse

/** The body of a response. */
export const of = (response: Response): Body => {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase() ?? ""
  if (Option.isSome(HttpClientResponse.toWeb(response))) {
    const isDecoded = encoding.split(",").every((name) => byFetch.has(name.trim()))
    return { isDecoded, bytes: response.stream }
  }
  const decompression = decompressionOf(encoding)
  return decompression === undefined
    ? { isDecoded: unencoded.has(encoding), bytes: response.stream }
    : { isDecoded: true, bytes: decompressed(response, decompression) }
}

/** `undefined` if the runtime does not know the encoding. */
const decompressionOf = (encoding: string): DecompressionStream | undefined => {
  const format = formats.get(encoding)
  try {
    return format === undefined ? undefined : runtime.decompression(format)
  } catch {
    return undefined
  }
}

/** Runtimes know more formats than the types of browsers list, or fewer. They throw for an unknown one. */
interface Runtime {
  decompression(format: string): DecompressionStream
}
const runtime: Runtime = { decompression: (format: CompressionFormat) => new DecompressionStream(format) }

const formats: ReadonlyMap<string, string> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"]
])

const unencoded: ReadonlySet<string> = new Set(["", "identity"])
const byFetch: ReadonlySet<string> = new Set([...unencoded, ...formats.keys(), "zstd"])

const decompressed = (response: Response, decompression: DecompressionStream): Body["bytes"] => {
  // `DecompressionStream` accepts no views of shared memory, and the type of `bytes` includes them.
  const compressed = Stream.map(response.stream, (bytes) => Uint8Array.from(bytes))
  const readable = Effect.map(Stream.toReadableStreamEffect(compressed), (stream) =>
    Stream.fromReadableStream({
      evaluate: () => stream.pipeThrough(decompression),
      onError: (cause) =>
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.DecodeError({ request: response.request, response, cause })
        })
    })
  )
  return Stream.unwrap(readable)
}
