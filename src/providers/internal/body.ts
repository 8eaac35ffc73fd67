/**
 * The body of a response as bytes that are asked for, one piece at a time, whichever client received it.
 *
 * What `fetch` and the clients of Node hold is read as it is: of what a turn costs outside the socket, the layers of
 * streams on the way are the largest part. The body of any other client is read as the stream it offers.
 */
import * as Effect from "effect/Effect"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import * as ByteSource from "../../internal/byteSource.ts"

export interface Body extends Pick<ByteSource.ByteSource, "read" | "cancel"> {
  /** What it gives is what the server meant, and no encoding of it that is not known here. */
  readonly isDecoded: boolean
}

type Response = HttpClientResponse.HttpClientResponse

type Headers = Readonly<Record<string, string | undefined>>

const encodingOf = (headers: Headers): string => headers["content-encoding"]?.trim().toLowerCase() ?? ""

/** The body of an answer whose bytes are here to be read. */
export const ofSource = ({ bytes, headers }: ByteSource.Answered): Body | undefined => {
  const encoding = encodingOf(headers)
  const decompression = decompressionOf(encoding)
  if (decompression === undefined) return ofBytes(bytes, unencoded.has(encoding))
  const encoded = ByteSource.toReadable({
    read: (told: ByteSource.Told<Uint8Array<ArrayBuffer>>, failed) =>
      bytes.read((piece) => told(piece && Uint8Array.from(piece)), failed),
    cancel: () => bytes.cancel()
  })
  return ofWeb(encoded.pipeThrough(decompression), true)
}

/** The body, if there is one. */
export const of = (response: Response): Effect.Effect<Body | undefined> => {
  const encoding = encodingOf(response.headers)
  const web = HttpClientResponse.toWeb(response)
  if (Option.isSome(web)) {
    // `fetch` decodes what it hands out.
    const isDecoded = encoding.split(",").every((name) => byFetch.has(name.trim()))
    return Effect.succeed(ofWeb(web.value.body, isDecoded))
  }
  const decompression = decompressionOf(encoding)
  const isDecoded = decompression !== undefined || unencoded.has(encoding)
  const body = decompression === undefined ? heldBy(response, isDecoded) : undefined
  return body !== undefined
    ? Effect.succeed(body)
    : Effect.map(streamed(response, decompression), (stream) => ofWeb(stream, isDecoded))
}

/** Other clients than `fetch` leave the decoding to their callers, and so ask for no encoding. Some servers encode all the same. */
const decompressionOf = (encoding: string): DecompressionStream | undefined => {
  const format = formats.get(encoding)
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

const formats: ReadonlyMap<string, string> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"]
])

const unencoded: ReadonlySet<string> = new Set(["", "identity"])
const byFetch: ReadonlySet<string> = new Set([...unencoded, ...formats.keys(), "zstd"])

const streamed = (
  { stream }: Response,
  decompression: DecompressionStream | undefined
): Effect.Effect<ReadableStream<Uint8Array>> => {
  if (decompression === undefined) return Stream.toReadableStreamEffect(stream)
  const bytes = Stream.map(stream, (part) => Uint8Array.from(part))
  return Effect.map(Stream.toReadableStreamEffect(bytes), (encoded) => encoded.pipeThrough(decompression))
}

const ofWeb = (stream: ReadableStream<Uint8Array> | null, isDecoded: boolean): Body | undefined => {
  const reader = stream?.getReader()
  return (
    reader && {
      isDecoded,
      read: (told, failed) => {
        reader.read().then(({ value }) => told(value), failed)
      },
      cancel: () => {
        reader.cancel().catch(() => {})
      }
    }
  )
}

// ───────────────────────── Node

/** As much of a Node stream as is used here. */
interface Readable {
  readonly on: (event: string, listener: (cause: unknown) => void) => unknown
  /** All that is buffered, or null. */
  readonly read: () => unknown
  readonly destroy: () => unknown
}

/**
 * What the responses of `NodeHttp` offer, and those of `NodeHttpClient` are made from. Only own properties count: a response
 * that somebody changed has them, if at all, from the one it was made of, and is read as it was meant.
 */
const heldBy = (response: Response, isDecoded: boolean): Body | undefined => {
  const original = own(response, "original") ?? response
  const bytes = own(original, ByteSource.key)
  if (ByteSource.isByteSource(bytes)) return ofBytes(bytes, isDecoded)
  const source = own(original, "source")
  const readable = own(source, "body") ?? source
  return isReadable(readable) ? ofReadable(readable, isDecoded) : undefined
}

const ofBytes = (bytes: ByteSource.ByteSource, isDecoded: boolean): Body => ({
  isDecoded,
  read: (told, failed) => bytes.read(told, failed),
  cancel: () => bytes.cancel()
})

const own = (from: unknown, name: string): unknown =>
  Predicate.isObject(from) && Object.hasOwn(from, name) ? from[name] : undefined

const isReadable = (value: unknown): value is Readable =>
  Predicate.isObject(value) &&
  typeof value["on"] === "function" &&
  typeof value["read"] === "function" &&
  typeof value["destroy"] === "function"

const ofReadable = (readable: Readable, isDecoded: boolean): Body => {
  let waiting: { readonly told: ByteSource.Told; readonly failed: ByteSource.Failed } | undefined
  let over: { readonly cause?: unknown } | undefined
  const read = (told: ByteSource.Told, failed: ByteSource.Failed): void => {
    const bytes = readable.read()
    if (bytes instanceof Uint8Array) told(bytes)
    else if (over === undefined) waiting = { told, failed }
    else if ("cause" in over) failed(over.cause)
    else told(undefined)
  }
  const goOn = () => {
    if (waiting === undefined) return
    const { failed, told } = waiting
    waiting = undefined
    read(told, failed)
  }
  const end = (how: { readonly cause?: unknown }) => {
    over ??= how
    goOn()
  }
  readable.on("readable", goOn)
  readable.on("end", () => end({}))
  readable.on("error", (cause) => end({ cause }))
  readable.on("close", () => end({ cause: new Error("The connection was closed before the end") }))
  return { isDecoded, read, cancel: () => readable.destroy() }
}
