/**
 * The tool calls of an answer of Chat Completions, put together from their pieces.
 *
 * Indices may be missing, texts, start anywhere, or be 0 for all calls. Ids and names may come once, always, or never, and equal for
 * several calls. A name may come in pieces. So the arguments decide: a new JSON object behind a whole one is another call.
 */
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import type { Logprob } from "../../../ModelEvent.ts"
import type { CallBlock, Prose, ReplyWriter } from "../../../reply/ReplyWriter.ts"
import { JsonEnd, canonical } from "../../../reply/WholeArguments.ts"
import type { Question } from "../../Protocol.ts"
import { logprobsOf } from "../reading.ts"
import * as Json from "../json.ts"

interface Open {
  readonly block: CallBlock
  /** The id and the index of the server, `undefined` if it sends none. */
  readonly id: string | undefined
  readonly index: number | undefined
  /** The name so far. */
  name: string | undefined
  /** Where the arguments end, for a server that repeats the name with the pieces of a call. */
  end: JsonEnd | undefined
  /** The arguments once they are whole. */
  value: string | undefined
}

interface Piece {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
  readonly given: string
}

export class Calls {
  private readonly reply: ReplyWriter
  private readonly declared: ReadonlySet<string>
  private readonly byIndex = new Map<number, Open>()
  /** The last call of each id of the server. */
  private readonly byId = new Map<string, Open>()
  private readonly all: Array<Open> = []

  constructor(reply: ReplyWriter, question: Question | undefined) {
    this.reply = reply
    this.declared = new Set(question?.tools.map(({ name }) => name))
  }

  /** Reads a piece of a call. */
  add(wire: Json.JsonObject): void {
    const custom = Json.object(wire["custom"])
    const fn = custom ?? Json.object(wire["function"])
    const name = Json.text(fn?.["name"])
    const piece = {
      index: indexOf(wire["index"]),
      id: Json.text(wire["id"]),
      name,
      given: textOf(fn?.[custom === undefined ? "arguments" : "input"])
    }
    const known = this.find(piece)
    const open = known === undefined || this.isOther(known, piece) ? this.begin(piece) : known
    const { block } = open
    const extra = wire["extra_content"]
    if (Json.isObject(extra) && block.kept === undefined) block.keep({ extraContent: extra })
    if (custom !== undefined && !block.isText) {
      block.isText = true
      block.keep({ custom: true })
    }
    if (name !== undefined && open === known) this.rename(open, name)
    this.write(open, piece)
  }

  /** Reads a piece of the one call of the protocol before tool calls. Servers may send the call in both forms. */
  addOld(fn: Json.JsonObject): void {
    if (this.all.every(({ index }) => index === old)) this.add({ index: old, function: fn })
  }

  /** Announces the calls whose names might have gone on. */
  end(): void {
    for (const open of this.all) announce(open)
  }

  private find({ id, index, name }: Piece): Open | undefined {
    const known = index === undefined ? undefined : this.byIndex.get(index)
    if (known !== undefined || (index !== undefined && name !== undefined)) return known
    if (id !== undefined) return this.byId.get(id)
    const last = this.all.at(-1)
    return index === undefined || last?.index === undefined ? last : undefined
  }

  /** Whether the piece begins another call than the one at its place. */
  private isOther(known: Open, { given, id, index, name }: Piece): boolean {
    if (name === undefined) return false
    const isSameId = id !== undefined && id === known.id
    const isOtherId = id !== undefined && known.id !== undefined && !isSameId
    const isOtherName = known.name !== undefined && name !== known.name && !isSameId
    const { json } = known.block
    if (!isOtherId && !isOtherName && known.block.isGrown(given)) return false
    if (json === "") {
      if (isOtherId) return true
      const joined = `${known.name}${name}`
      if (isOtherName) return !this.declared.has(joined) && !this.mayGoOn(joined)
      return index === undefined && !isSameId
    }
    if (known.block.isText) return isOtherId || isOtherName
    if (given.trim() === "") return isOtherId || isOtherName || (index === undefined && !isSameId)
    known.end ??= new JsonEnd().add(json)
    const begins = /^\s*["{]/.test(given)
    if (!known.end.isWhole) return isOtherName || (isOtherId && given.trimStart().startsWith("{"))
    if (isOtherId || isOtherName) return true
    if (!begins) return index === undefined && !isSameId
    known.value ??= canonical(json)
    return canonical(given) !== known.value && !(isSameId && known.value === "{}")
  }

  private begin(piece: Piece): Open {
    const { id, index, name } = piece
    const open: Open = {
      block: this.reply.openCall(id, this.mayGoOn(name) ? undefined : name),
      id,
      index,
      name,
      end: undefined,
      value: undefined
    }
    this.all.push(open)
    if (index !== undefined) this.byIndex.set(index, open)
    if (id !== undefined) this.byId.set(id, open)
    return open
  }

  /** Whether a name may be a piece of the name of a tool. */
  private mayGoOn(name: string | undefined): boolean {
    if (name === undefined) return false
    for (const tool of this.declared) if (tool.length > name.length && tool.startsWith(name)) return true
    return false
  }

  private rename(open: Open, name: string): void {
    const { block } = open
    if (block.name !== undefined) return
    const joined = `${open.name ?? ""}${name}`
    if (open.name === undefined || (name !== open.name && block.json === "") || this.declared.has(joined))
      open.name = joined
    if (!this.mayGoOn(open.name)) announce(open)
  }

  private write(open: Open, { given, name }: Piece): void {
    if (given === "") return
    const { block } = open
    announce(open)
    if (open.end !== undefined) {
      if (
        name !== undefined &&
        open.end.isWhole &&
        open.value !== undefined &&
        open.value === canonical(given)
      )
        return
      open.end.add(given)
      open.value = undefined
    }
    block.write(given)
  }
}

/** A call without a name is announced at its end. */
const announce = ({ block, name }: Open): void => {
  if (name !== undefined) block.named(name)
}

/** The place of the call of the old protocol. */
const old = -1

const indexOf = (json: Json.Json | undefined): number | undefined =>
  Json.number(typeof json === "string" && /^\d+$/.test(json) ? Number(json) : json)

/** Some local servers send an object instead of its JSON text. */
const textOf = (json: Json.Json | undefined): string =>
  typeof json === "string" ? json : Json.isObject(json) ? JSON.stringify(json) : ""

// ───────────────────────── Other content

// Content of an answer besides text, thinking and calls: images, recordings, sources, tools that the vendor ran, and the
// probabilities of tokens.

export class Extras {
  private readonly reply: ReplyWriter
  private readonly audio = new Map<string, string>()
  private readonly recording: Array<string> = []
  private readonly annotations: Array<Json.JsonObject> = []
  /** Each chunk repeats both lists. */
  private citations: ReadonlyArray<Json.Json> = []
  private searchResults: ReadonlyArray<Json.Json> = []
  private readonly logprobs: Array<Logprob> = []

  constructor(reply: ReplyWriter) {
    this.reply = reply
  }

  /** Whether nothing is left for the end of the answer. */
  get isEmpty(): boolean {
    const { annotations, citations, recording, searchResults } = this
    return annotations.length + citations.length + recording.length + searchResults.length === 0
  }

  /** Adds members of a chunk besides its delta. */
  addChunk(
    { citations, search_results: searchResults }: Json.JsonObject,
    choice: Json.JsonObject | undefined
  ): void {
    if (citations !== undefined) this.citations = Json.array(citations)
    if (searchResults !== undefined) this.searchResults = Json.array(searchResults)
    const logprobs = choice?.["logprobs"]
    if (logprobs === undefined || logprobs === null) return
    const { content, refusal } = Json.object(logprobs) ?? {}
    this.logprobs.push(...logprobsOf(content), ...logprobsOf(refusal))
  }

  addDelta({ annotations, audio, executed_tools: tools, images }: Json.JsonObject): void {
    if (images !== undefined) for (const image of Json.array(images)) this.addPart(Json.object(image))
    if (tools !== undefined) for (const tool of Json.array(tools)) this.addTool(Json.object(tool))
    if (audio !== undefined) this.addAudio(Json.object(audio))
    for (const annotation of Json.array(annotations)) {
      if (Json.isObject(annotation)) this.annotations.push(annotation)
    }
  }

  /** Adds an image or a recording of the model. */
  addPart(part: Json.JsonObject | undefined): void {
    if (part === undefined) return
    const url = Json.text(Json.object(part["image_url"])?.["url"]) ?? Json.text(part["image_url"])
    if (url !== undefined) return this.reply.media({ source: sourceOf(url, "image/png") }, { part })
    const audio = Json.object(part["input_audio"]) ?? Json.object(part["audio"])
    if (audio !== undefined) this.addAudio(audio)
    else this.reply.openText().keep({ part })
  }

  /** Groq's compound models run tools. */
  private addTool(tool: Json.JsonObject | undefined): void {
    if (tool === undefined) return
    const { arguments: args, output, type } = tool
    const block = this.reply.hostedTool(`tool_${this.reply.length}`, Json.text(type) ?? "tool")
    const params = Json.parseShallow(Json.text(args) ?? "") ?? args
    block.end(
      { ...(params === undefined ? {} : { params }), ...(output === undefined ? {} : { result: output }) },
      { tool }
    )
  }

  /** A recording comes in pieces, with its words. */
  private addAudio(audio: Json.JsonObject | undefined): void {
    if (audio === undefined) return
    const { data, id, transcript } = audio
    if (typeof id === "string") this.audio.set("id", id)
    if (typeof data === "string" && data !== "") this.recording.push(data)
    if (typeof transcript !== "string") return
    this.audio.set("transcript", (this.audio.get("transcript") ?? "") + transcript)
    this.reply.text(transcript)
  }

  /** Writes the recording and the sources, which belong to the answer as a whole. Returns the probabilities of its tokens. */
  end(): ReadonlyArray<Logprob> {
    if (this.recording.length > 0) {
      const data = joined(this.recording)
      this.reply.media({ source: { data, mediaType: "audio/pcm" }, ...Object.fromEntries(this.audio) })
    }
    const known = new Set<string>()
    for (const [fields, kept] of this.sources()) {
      const { url } = fields
      if (url !== undefined && known.has(url)) continue
      if (url !== undefined) known.add(url)
      this.reply.source({ sourceType: url === undefined ? "document" : "url", ...fields }, kept)
    }
    return this.logprobs
  }

  /** Annotations name the passage that relies on them, search results have titles, and citations are addresses alone. */
  private sources(): ReadonlyArray<readonly [fields: Fields, kept: Json.JsonObject]> {
    return [
      ...this.annotations.map((annotation) => [ofAnnotation(annotation), { annotation }] as const),
      ...this.searchResults.map(
        (result) => [ofResult(Json.object(result)), { searchResult: result }] as const
      ),
      ...this.citations.map((citation) => [ofResult(citation), { citation }] as const)
    ]
  }
}

interface Fields {
  readonly id?: string
  readonly url?: string
  readonly title?: string
  readonly fileName?: string
  readonly citedText?: string
}

const ofAnnotation = (annotation: Json.JsonObject): Fields => {
  const { file, url_citation: citation } = annotation
  const document = Json.object(file)
  if (document === undefined) return ofResult(Json.object(citation) ?? annotation)
  return strings({ id: document["hash"] ?? document["id"], fileName: document["name"] })
}

const ofResult = (result: Json.Json | undefined): Fields => {
  if (typeof result === "string") return { url: result }
  const { content, snippet, title, url } = Json.object(result) ?? {}
  return strings({ url, title, citedText: content ?? snippet })
}

/** The members that are texts and not empty. */
const strings = (members: Readonly<Record<string, Json.Json | undefined>>): Fields =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => {
      const text = Json.text(value)
      return text === undefined ? [] : [[name, text]]
    })
  )

/** The bytes of a data URL, or the address. */
const sourceOf = (url: string, usual: string) => {
  const [, mediaType = usual, data] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? []
  return data === undefined ? { url, mediaType } : { data, mediaType: mediaType || usual }
}

/** Joins pieces of base64, each of which may end in padding. */
const joined = (pieces: ReadonlyArray<string>): string => {
  const decoded = pieces.map((piece) => Base64.decode(piece))
  if (!decoded.every(Result.isSuccess)) return pieces.join("")
  return Base64.encode(Uint8Array.from(decoded.flatMap(({ success }) => [...success])))
}

// ───────────────────────── Details of thinking

// Details of thinking that OpenRouter and similar gateways require back, such as signatures.

export class Details {
  private readonly reply: ReplyWriter
  private block: Prose | undefined = undefined
  /** The details of `block`. */
  private found: Array<Map<string, Json.Json>> = []

  constructor(reply: ReplyWriter) {
    this.reply = reply
  }

  /** Adds a detail, or a piece of one, to the open block of thinking. Returns its text, `undefined` if it has none. */
  add(detail: Json.JsonObject): string | undefined {
    const block = this.reply.block("thinking")
    if (block !== this.block) {
      const found: Array<Map<string, Json.Json>> = []
      this.block = block
      this.found = found
      block.keepAtEnd(() => ({ reasoningDetails: found.map((detail) => Object.fromEntries(detail)) }))
    }
    this.join(detail)
    return Json.text(detail["text"]) ?? Json.text(detail["summary"])
  }

  /** The pieces of one detail are consecutive. A signature comes in the last piece. */
  private join(detail: Json.JsonObject): void {
    const last = this.found.at(-1)
    const isPiece = detail["type"] === "reasoning.text" || detail["type"] === "reasoning.summary"
    const isSame = last?.get("type") === detail["type"] && last?.get("index") === detail["index"]
    if (last === undefined || !isPiece || !isSame) {
      this.found.push(new Map(Object.entries(detail)))
      return
    }
    for (const [key, value] of Object.entries(detail)) {
      const before = key === "text" || key === "summary" ? last.get(key) : undefined
      if (value === null || value === "") continue
      last.set(key, typeof before === "string" && typeof value === "string" ? before + value : value)
    }
  }
}

// ───────────────────────── Thinking between tags

// Thinking that a server leaves in the text of an answer, between tags of the model: `<think>…</think>` at its start, or only a closing
// tag where the prompt of the server had the opening one. A tag may come in any number of pieces.

/**
 * `lead`: there is no text yet. `think`: in the tags. `watch`: a text, of which a closing tag would make thinking. `off`: the rest is text.
 */
type State = "lead" | "think" | "watch" | "off"

export class ThinkTags {
  private readonly reply: ReplyWriter
  private state: State
  /** The start of what may be a tag, or white space before it. */
  private held = ""
  /** Whether thinking came before, so that white space behind it belongs to neither. */
  private hasThought = false
  /** Whether the tag of the thinking has just opened. */
  private isFresh = false

  constructor(reply: ReplyWriter, isOn: boolean) {
    this.reply = reply
    this.state = isOn ? "lead" : "off"
  }

  /** Writes a piece of the text. */
  write(delta: string): void {
    if (this.state === "off" || (this.state === "watch" && this.held === "" && !delta.includes("<")))
      return this.reply.text(delta)
    this.held += delta
    while (this.held !== "" && this.step()) continue
  }

  /** Writes what was held: something else follows, or nothing. */
  end(): void {
    const { held, state } = this
    if (state === "off") return
    this.held = ""
    this.state = "off"
    if (state === "think") this.reply.thinking(held)
    else this.reply.text(this.hasThought ? held.trimStart() : held)
  }

  /** Reads what is held. Returns whether there is more to read. */
  private step(): boolean {
    switch (this.state) {
      case "lead":
        return this.lead()
      case "think":
        if (this.isFresh) this.held = this.held.trimStart()
        this.isFresh = this.isFresh && this.held === ""
        return this.until(closing, "thinking", () => this.thought())
      case "watch":
        if (opening.test(this.held)) return this.rest()
        return this.until(lone, "text", (before) => this.closed(before))
      case "off":
        return this.rest()
    }
  }

  private lead(): boolean {
    const text = this.held.trimStart()
    const [tag] = leading.exec(text) ?? []
    if (tag !== undefined) {
      this.held = text.slice(tag.length).trimStart()
      this.hasThought = true
      this.isFresh = !tag.startsWith("</")
      if (this.isFresh) this.state = "think"
      return true
    }
    if (text === "" || tags.some((known) => known.startsWith(text.toLowerCase()))) return false
    if (this.hasThought) this.held = text
    // Another block before the text shows that the server knows thinking from text.
    this.state = this.hasThought || this.reply.length > 0 ? "off" : "watch"
    return true
  }

  /** Writes what stands before a tag, and all if there is none, but for what may be the start of one. */
  private until(tag: RegExp, kind: "text" | "thinking", found: (before: string) => boolean): boolean {
    const { held } = this
    const { 0: all = "", index } = tag.exec(held) ?? { index: -1 }
    if (index !== -1) {
      this.held = held.slice(index + all.length)
      const before = held.slice(0, index)
      if (found(before)) {
        if (kind === "thinking") this.reply.thinking(before)
        return true
      }
      this.reply.text(before + all)
      return true
    }
    const from = held.lastIndexOf("<")
    const isTag = from !== -1 && tags.some((known) => known.startsWith(held.slice(from).toLowerCase()))
    this.held = isTag ? held.slice(from) : ""
    this.reply[kind](isTag ? held.slice(0, from) : held)
    return false
  }

  private thought(): boolean {
    this.state = "lead"
    return true
  }

  /** Makes thinking of the text before a closing tag, unless the text is about the tag. */
  private closed(before: string): boolean {
    const { length, prose } = this.reply
    const text = `${prose?.text ?? ""}${before}`
    this.state = "off"
    if (length > 1 || /[\s`'"(]$/.test(text.replace(/\n+$/, "")) || text.split("```").length % 2 === 0)
      return false
    this.reply.restart()
    this.reply.thinking(text)
    this.hasThought = true
    this.state = "lead"
    return true
  }

  private rest(): boolean {
    this.state = "off"
    this.reply.text(this.held)
    this.held = ""
    return false
  }
}

const tags = ["think", "thinking", "mm:think", "seed:think"].flatMap((name) => [`<${name}>`, `</${name}>`])
const opening = /<(?:mm:|seed:)?think(?:ing)?>/i
const closing = /<\/(?:mm:|seed:)?think(?:ing)?>/i
const leading = /^<\/?(?:mm:|seed:)?think(?:ing)?>/i
const lone = /<\/(?:mm:|seed:)?think>/i
