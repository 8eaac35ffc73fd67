/**
 * The tool calls of an answer of Chat Completions, put together from their pieces.
 *
 * Indices may be missing, texts, start anywhere, or be 0 for all calls. Ids and names may come once, always, or never, and equal for
 * several calls. A name may come in pieces. So the arguments decide: a new JSON object behind a whole one is another call.
 */
import * as Json from "../json.ts"
import { canonical, JsonEnd } from "../../../reply/WholeArguments.ts"
import type { Question } from "../../Protocol.ts"
import type { CallBlock, ReplyWriter } from "../../../reply/ReplyWriter.ts"

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
