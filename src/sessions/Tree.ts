/**
 * The tree of a session's entries, built in the order in which they were written.
 *
 * An entry belongs behind the entry that its `parentId` names, if that one stands before it. So there are no cycles, whatever the ids
 * are, and of two entries with one id the later one counts for those behind it. An entry whose parent is lost belongs behind the entry
 * that was the current one at the last broken line before it, and without a broken line behind the entry before it: in a conversation
 * without branches that is the parent of the lost entry, so that the conversation stays whole but for the lost entry.
 */
import type { SessionEntry } from "./SessionEntry.ts"

/** The parent of the first entry. */
const root = -1

export class Tree {
  private readonly places: Array<{
    readonly id: string
    readonly parent: number
    entry: SessionEntry | undefined
  }> = []
  private readonly latest = new Map<string, number>()
  /** The current entry, behind which the next one belongs. */
  private current = root
  /** The current entry at the last broken line. */
  private gap: number | undefined
  /** The places of the current branch, once computed, first one first. */
  private way: Array<number> | undefined
  private isTrimmed = false

  /** The id of the current entry, `null` without entries. */
  get leaf(): string | null {
    return this.places[this.current]?.id ?? null
  }

  has(id: string): boolean {
    return this.latest.has(id)
  }

  /** Adds the next entry. Returns the fault of its place in words, if it has one. */
  add(entry: SessionEntry): string | undefined {
    const { id, parentId } = entry
    const known = parentId === null ? root : this.latest.get(parentId)
    const parent = known ?? this.gap ?? this.current
    const isDouble = this.latest.has(id)
    const kept = this.isTrimmed && !isNeeded(entry) ? undefined : entry
    const place = this.places.push({ id, parent, entry: kept }) - 1
    this.latest.set(id, place)
    const target = entry.type === "leaf" ? this.latest.get(entry.targetId) : place
    this.moveTo(target ?? place, parent)
    if (known === undefined) return `its parent ${parentId} is lost`
    if (target === undefined) return "its target is lost"
    return isDouble ? `the id ${id} has an earlier entry` : undefined
  }

  /** Notes a line that holds no entry. */
  addBroken(lost: { readonly id: string; readonly parentId: string } | undefined): void {
    const parent = lost === undefined ? undefined : this.latest.get(lost.parentId)
    if (lost === undefined || parent === undefined || this.latest.has(lost.id)) this.gap = this.current
    else this.latest.set(lost.id, parent)
  }

  private moveTo(place: number, parent: number): void {
    if (place === this.places.length - 1 && parent === this.current) this.way?.push(place)
    else this.way = undefined
    this.current = place
  }

  /** The entries of the current branch, first one first. After `trim` its messages and compactions alone. */
  branch(): ReadonlyArray<SessionEntry> {
    this.way ??= this.wayTo(this.current)
    return this.way.flatMap((place) => this.places[place]?.entry ?? [])
  }

  /**
   * The entries of the current branch behind the last one that is meant, first one first: all of them without one. `undefined` after
   * `trim`, which has dropped some.
   */
  behind(isMeant: (entry: SessionEntry) => boolean): ReadonlyArray<SessionEntry> | undefined {
    if (this.isTrimmed) return undefined
    const entries: Array<SessionEntry> = []
    for (let at = this.current; at !== root; at = this.places[at]?.parent ?? root) {
      const entry = this.places[at]?.entry
      if (entry !== undefined && isMeant(entry)) break
      if (entry !== undefined) entries.push(entry)
    }
    return entries.reverse()
  }

  /** The last entry of the current branch that is meant. After `trim` it is a message or a compaction. */
  last<E extends SessionEntry>(isMeant: (entry: SessionEntry) => entry is E): E | undefined {
    for (let at = this.current; at !== root; at = this.places[at]?.parent ?? root) {
      const entry = this.places[at]?.entry
      if (entry !== undefined && isMeant(entry)) return entry
    }
    return undefined
  }

  /** The entries on the way to an entry, first one first, or `undefined` if there is none with this id. */
  branchTo(id: string): ReadonlyArray<SessionEntry> | undefined {
    const place = this.latest.get(id)
    return place === undefined ? undefined : this.wayTo(place).flatMap((at) => this.places[at]?.entry ?? [])
  }

  /** Forgets the entries that a session does not need that is open at an entry, now and as they are added. Default: the current one. */
  trim(id?: string): void {
    const way = new Set(this.wayTo(this.latest.get(id ?? "") ?? this.current))
    this.places.forEach((place, at) => {
      if (!way.has(at) || !isNeeded(place.entry)) place.entry = undefined
    })
    this.isTrimmed = true
  }

  private wayTo(place: number): Array<number> {
    const way: Array<number> = []
    for (let at = place; at !== root; at = this.places[at]?.parent ?? root) way.push(at)
    return way.reverse()
  }
}

const isNeeded = (entry: SessionEntry | undefined): boolean =>
  entry?.type === "message" || entry?.type === "compaction"
