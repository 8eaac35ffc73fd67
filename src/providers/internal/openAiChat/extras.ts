/**
 * Content of an answer besides text, thinking and calls: images, recordings, sources, tools that the vendor ran, and the
 * probabilities of tokens.
 */
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import type { Logprob } from "../../../ModelEvent.ts"
import * as Json from "../json.ts"
import { logprobsOf } from "../logprobs.ts"
import type { ReplyWriter } from "../../../reply/ReplyWriter.ts"

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
