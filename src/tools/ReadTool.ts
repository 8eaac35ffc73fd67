/**
 * The tool `read`: returns lines of a text file, or an image.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Base64 from "effect/encoding/Base64"
import { image, text } from "../Message.ts"
import * as Tool from "../Tool.ts"
import * as ImageFile from "../media/ImageFile.ts"
import * as Files from "./Files.ts"
import { FileFailed, PathFailure, fromPlatform } from "./PathFailure.ts"
import type * as Root from "./Root.ts"
import type * as Folder from "./internal/Folder.ts"

/**
 * Maximum lines that one call returns.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxLines = 2_000

/**
 * Maximum bytes of text that one call returns.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxBytes = 50_000

/**
 * Maximum characters of one line.
 *
 * The tool cuts a longer line and reports its length.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxLine = 2_000

/**
 * Maximum bytes of an image: 3.75 MiB, which are 5 MiB in base64.
 *
 * The tool refuses a larger one, because providers do.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxImageBytes = 3.75 * 1024 * 1024

/**
 * Above this many bytes the tool stops at the last line it returns, and does not count the lines of the file.
 */
const maxCountedBytes = 16 * 1024 * 1024

const Params = Schema.Struct({
  path: Schema.String.annotate({ description: "The file, relative to the root or absolute" }),
  offset: Schema.optionalKey(Schema.Int).annotate({
    description:
      "First line to read, from 1. Negative: counted from the end, -20 reads the last 20. Default: 1"
  }),
  limit: Schema.optionalKey(Schema.Int).annotate({
    description: `Lines to read. Default and at most: ${maxLines}`
  }),
  lineNumbers: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Put the line's number and a tab before each line. Default: false"
  })
})
type Params = typeof Params.Type

/**
 * Makes the tool `read`.
 *
 * **Details**
 *
 * The tool detects the type of a file by its first bytes. It returns png, jpg, gif and webp files as images,
 * text with a note of the lines it left out, and fails with `FileFailed` for other binary files, for an image that is cut, and
 * for one that the model cannot take. It fails with `PathRefused` for a path outside the readable folders.
 *
 * **Example** (Reading the first lines of a file)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent, Message } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 * import { ReadTool } from "effect-agent/tools"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const agent = yield* Agent.make({ model: "any", tools: [ReadTool.make({ root: "." })] })
 *     const { newMessages } = yield* agent.prompt("What is this package?")
 *     for (const message of newMessages) console.log(`${message.role}: ${Message.textOf(message)}`)
 *   })
 * )
 *
 * const script = [ScriptedProvider.toolCall("read", { path: "package.json", limit: 2 }), ScriptedProvider.text("Done.")]
 * const layer = Layer.merge(ScriptedProvider.layer(script), NodeServices.layer)
 * await Effect.runPromise(program.pipe(Effect.provide(layer)))
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Root.Options) =>
  Tool.make({
    name: "read",
    label: "Read",
    effect: "pure",
    description:
      "Reads a text file, or shows an image (png, jpg, gif, webp). Of a long file it gives the first " +
      `${maxLines} lines or ${maxBytes / 1000} kB, and the offset of the next line.`,
    params: Params,
    failure: PathFailure,
    execute: Effect.fnUntraced(function* (params: Params) {
      const opened = yield* Files.open(options, params.path)
      const first = yield* next(opened, params.path)
      const kind = Files.kindOf(first ?? new Uint8Array())
      switch (kind._tag) {
        case "Image":
          return yield* readImage(opened, params.path, kind.mediaType)
        case "Binary":
          return yield* refuse(
            params.path,
            `it is ${kind.format} (${opened.info.size} bytes); inspect it with another tool`
          )
        case "Text":
          return first === undefined
            ? Tool.output("(The file is empty.)", { details: { path: opened.shown, lines: 0 } })
            : yield* readText(opened, params, first, kind.encoding)
      }
    }, Effect.scoped)
  })

type Opened = Folder.OpenFile & { readonly shown: string }

const next = ({ file }: Opened, path: string): Effect.Effect<Uint8Array | undefined, PathFailure> =>
  file.readAlloc(Files.chunkSize).pipe(
    Effect.map((chunk) => (chunk._tag === "Some" ? chunk.value : undefined)),
    Effect.mapError((error) => fromPlatform(path, error))
  )

const refuse = (path: string, detail: string) => new FileFailed({ path, reason: "other", detail })

const readImage = Effect.fnUntraced(function* (opened: Opened, path: string, mediaType: string) {
  const { info, shown } = opened
  if (info.size > maxImageBytes) {
    return yield* refuse(path, `it is an image of ${info.size} bytes; at most ${maxImageBytes} can be shown`)
  }
  const bytes = yield* Files.readAll(opened, path, maxImageBytes)
  const size = bytes.length
  const data = Base64.encode(bytes)
  const shot = image(data, mediaType)
  const read = ImageFile.read(data)
  if (read !== undefined && "fault" in read) return yield* refuse(path, read.fault)
  const refusal = (yield* Effect.serviceOption(Tool.ToolContext)).pipe(
    Option.flatMapNullishOr(({ refuses }) => refuses?.(shot))
  )
  if (Option.isSome(refusal))
    return yield* refuse(
      path,
      `it is an image (${mediaType}, ${size} bytes) that you cannot see: ${refusal.value}`
    )
  return Tool.output([text(`${shown}: ${mediaType}, ${size} bytes`), shot], {
    details: { path: shown, mediaType, bytes: size }
  })
})

const readText = Effect.fnUntraced(function* (
  opened: Opened,
  params: Params,
  first: Uint8Array,
  encoding: string
) {
  const offset = yield* firstLine(opened, params, first, encoding)
  const limit = Math.min(params.limit !== undefined && params.limit > 0 ? params.limit : maxLines, maxLines)
  const window = windowOf({ offset, limit, maxBytes, maxLine })
  const isCounted = opened.info.size <= maxCountedBytes
  const isWhole = yield* feed(
    opened,
    params.path,
    first,
    encoding,
    window,
    () => isCounted || !window.isFull()
  )
  if (window.lines.length === 0) {
    const detail = `it has ${window.total()} lines, so there is no line ${offset}`
    return yield* refuse(params.path, detail)
  }
  return rendered(opened, { ...params, offset }, window, { isWhole, bom: hasBom(first), encoding })
})

/** The number of the first line: models that count from 0 mean the start by it, and the end by negative numbers. */
const firstLine = Effect.fnUntraced(function* (
  opened: Opened,
  { offset = 1, path }: Params,
  first: Uint8Array,
  encoding: string
) {
  if (offset >= 0) return Math.max(offset, 1)
  const window = windowOf({ offset: Infinity, limit: 1, maxBytes, maxLine })
  yield* feed(opened, path, first, encoding, window, () => true)
  yield* Effect.mapError(opened.file.seek(BigInt(first.length), "start"), (error) =>
    fromPlatform(path, error)
  )
  return Math.max(window.total() + offset + 1, 1)
})

/** Reads on from the first bytes until the window needs no more. Returns whether it read all. */
const feed = Effect.fnUntraced(function* (
  opened: Opened,
  path: string,
  first: Uint8Array,
  encoding: string,
  window: LineWindow,
  isNeeded: () => boolean
) {
  const decoder = new TextDecoder(encoding)
  let chunk: Uint8Array | undefined = first
  while (chunk !== undefined && isNeeded()) {
    window.push(decoder.decode(chunk, { stream: true }))
    chunk = yield* next(opened, path)
  }
  if (chunk !== undefined) return false
  window.push(decoder.decode())
  window.end()
  return true
})

const hasBom = (bytes: Uint8Array): boolean => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

const rendered = (
  { info, shown }: Opened,
  params: Params,
  window: LineWindow,
  { bom, encoding, isWhole }: { readonly isWhole: boolean; readonly bom: boolean; readonly encoding: string }
): Tool.ToolOutput => {
  const from = params.offset ?? 1
  const to = from + window.lines.length - 1
  const total = isWhole ? window.total() : undefined
  const hasNul = window.lines.some((line) => line.includes("\0"))
  const lines = hasNul ? window.lines.map((line) => line.replaceAll("\0", nul)) : window.lines
  const numbered = lines.map((line, index) =>
    params.lineNumbers === true ? `${from + index}\t${line}` : line
  )
  const notes = [
    ...window.cut
      .map(({ length, line }) => `[Line ${line} is cut after ${maxLine} of ${length} characters.]`)
      .slice(0, 5),
    ...(total !== undefined && to >= total && from === 1 ? [] : [position(from, to, total, info.size)]),
    ...(window.crlf() > 0 ? ["[Lines end in CRLF.]"] : []),
    ...(bom ? ["[The file begins with a byte order mark.]"] : []),
    ...(encoding === "utf-8" ? [] : ["[The file is UTF-16 text.]"]),
    ...(lines.some((line) => line.includes("\ufffd"))
      ? ["[\ufffd stands for bytes that are no UTF-8.]"]
      : []),
    ...(hasNul ? [`[${nul} stands for a NUL.]`] : [])
  ]
  return Tool.output([...numbered, ...(notes.length === 0 ? [] : ["", ...notes])].join("\n"), {
    details: {
      path: shown,
      from,
      to,
      ...(total === undefined ? {} : { lines: total }),
      bytes: Number(info.size),
      crlf: window.crlf() > 0,
      bom
    }
  })
}

/** Vendors refuse requests with a NUL. */
const nul = "\u2400"

const position = (from: number, to: number, total: number | undefined, size: bigint): string => {
  const of = total === undefined ? `a file of ${size} bytes` : `${total}`
  const on = total !== undefined && to >= total ? "" : ` Read on with offset ${to + 1}.`
  return `[Lines ${from}-${to} of ${of}.${on}]`
}

// ───────────────────────── The window of lines

/**
 * Selects a range of lines from a text that arrives in pieces. Holds only the lines that it returns, for texts
 * and lines of any length.
 */

interface Bounds {
  /** Number of the first line to return, from 1. */
  readonly offset: number
  /** Maximum lines to return. */
  readonly limit: number
  /** Maximum UTF-8 bytes of all lines together. */
  readonly maxBytes: number
  /** Maximum characters of one line. Longer lines are cut. */
  readonly maxLine: number
}

interface LineWindow {
  readonly push: (text: string) => void
  /** Must be called once, after the last piece. */
  readonly end: () => void
  /** Whether further text can only change `total` and `crlf`. */
  readonly isFull: () => boolean
  readonly lines: ReadonlyArray<string>
  /** Numbers of the returned lines that were cut, and their full lengths in characters. */
  readonly cut: ReadonlyArray<{ readonly line: number; readonly length: number }>
  /** Number of lines so far. A line end at the end of the text does not start a line. */
  readonly total: () => number
  /** Number of lines so far that end in CRLF. */
  readonly crlf: () => number
}

const windowOf = (bounds: Bounds): LineWindow => {
  const lines: Array<string> = []
  const cut: Array<{ readonly line: number; readonly length: number }> = []
  let total = 0
  let crlf = 0
  let bytes = 0
  let full = false
  let kept = ""
  let length = 0
  let last = ""

  const isWanted = () => !full && total + 1 >= bounds.offset
  const extend = (text: string) => {
    if (text === "") return
    // Keeps one character more than it returns, so that the \r of a CRLF can be removed.
    if (isWanted() && kept.length <= bounds.maxLine) kept += text.slice(0, bounds.maxLine + 1 - kept.length)
    length += text.length
    last = text.slice(-1)
  }
  const finish = (ended: boolean) => {
    const isCrlf = ended && last === "\r"
    if (isCrlf) crlf++
    if (isWanted()) take(isCrlf ? length - 1 : length)
    total++
    kept = ""
    length = 0
    last = ""
  }
  const take = (size: number) => {
    const line = whole(kept.slice(0, Math.min(size, bounds.maxLine)))
    const cost = encoder.encode(line).length + 1
    // The first line is always returned, else a model that continues at this offset would make no progress.
    if (lines.length >= bounds.limit || (lines.length > 0 && bytes + cost > bounds.maxBytes)) {
      full = true
      return
    }
    bytes += cost
    lines.push(line)
    if (size > line.length) cut.push({ line: total + 1, length: size })
    if (lines.length === bounds.limit) full = true
  }

  return {
    push: (text) => {
      let from = 0
      for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
        extend(text.slice(from, at))
        finish(true)
        from = at + 1
      }
      extend(text.slice(from))
    },
    end: () => {
      if (length > 0) finish(false)
    },
    isFull: () => full,
    lines,
    cut,
    total: () => total,
    crlf: () => crlf
  }
}

const encoder = new TextEncoder()

/** Without the first half of a character whose second one is cut off. */
const whole = (text: string): string => (/[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text)
