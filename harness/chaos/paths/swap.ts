/**
 * Puts a link to the outside in the place of what a tool is at, and back, between any two things that the tool does.
 */
import { Effect, type FileSystem } from "effect"
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { inside } from "./ground.ts"

/** What is swapped for a link, and the path by which a tool is then asked for it. Both from the root. */
export interface Trick {
  readonly victim: string
  readonly target: (outside: string) => string
  readonly paths: ReadonlyArray<string>
}

const first: Trick = {
  victim: "d",
  target: (outside) => outside,
  paths: ["d/secret.txt", "d", "d/new.txt", "d/e/x.txt", "."]
}

export const tricks: readonly [Trick, ...ReadonlyArray<Trick>] = [
  first,
  { victim: "d", target: () => "../outside", paths: ["d/secret.txt", "d", "d/new/deep.txt"] },
  { victim: "d", target: (outside) => `/proc/self/root${outside}`, paths: ["d/secret.txt", "d"] },
  {
    victim: "d/secret.txt",
    target: (outside) => join(outside, "secret.txt"),
    paths: ["d/secret.txt", "d", "."]
  },
  { victim: "a", target: (outside) => dirname(outside), paths: ["a/outside/secret.txt", "a/outside", "a"] },
  { victim: "d/new.txt", target: (outside) => join(outside, "new.txt"), paths: ["d/new.txt", "d"] },
  { victim: "d/e", target: (outside) => outside, paths: ["d/e/secret.txt", "d/e/new.txt", "d", "d/e"] }
]

/** One trick, played at some calls of the file system: swapped at the first, back at the second, and so on. */
export class Stage {
  private calls = 0
  private moments: ReadonlySet<number> = new Set()
  private trick: Trick = first
  private isSwapped = false
  private readonly root: string
  private readonly outside: string

  constructor(root: string, outside: string) {
    this.root = root
    this.outside = outside
  }

  /** How often something was swapped, over all races. */
  swaps = 0

  begin(trick: Trick, moments: ReadonlyArray<number>): void {
    this.trick = trick
    this.calls = 0
    this.moments = new Set(moments)
  }

  /** Everything is as it was, also what a tool has changed since. Gives the number of calls there were. */
  end(): number {
    this.moments = new Set()
    if (this.isSwapped) this.toggle()
    write(join(this.root, "d/secret.txt"), inside)
    write(join(this.root, "d/e/x.txt"), inside)
    write(join(this.root, "a/outside/secret.txt"), inside)
    rmSync(join(this.root, "d/new.txt"), { force: true, recursive: true })
    rmSync(join(this.root, "d/new"), { force: true, recursive: true })
    return this.calls
  }

  /** Counts a call, which is about to be made. */
  readonly call = (): void => {
    if (this.moments.has(++this.calls)) this.toggle()
  }

  private toggle(): void {
    const victim = join(this.root, this.trick.victim)
    const kept = join(this.root, "kept")
    if (this.isSwapped) {
      // A write may have made something in its place meanwhile.
      rmSync(victim, { force: true, recursive: true })
      if (isThere(kept)) renameSync(kept, victim)
    } else {
      if (isThere(victim)) renameSync(victim, kept)
      mkdirSync(dirname(victim), { recursive: true })
      symlinkSync(this.trick.target(this.outside), victim)
      this.swaps++
    }
    this.isSwapped = !this.isSwapped
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

const write = (path: string, content: string): void => {
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

/** Calls `before` ahead of each call that goes to the system, files that were opened included. */
export const watched = (files: FileSystem.FileSystem, before: () => void): FileSystem.FileSystem =>
  new Proxy(files, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== "function") return member
      return (...args: ReadonlyArray<unknown>) => {
        const made: unknown = Reflect.apply(member, target, args)
        if (!Effect.isEffect(made)) return made
        const call = Effect.suspend(() => (before(), made))
        return name === "open" ? Effect.map(call, (file) => watchedFile(file, before)) : call
      }
    }
  })

const watchedFile = (file: unknown, before: () => void): unknown =>
  typeof file !== "object" || file === null
    ? file
    : new Proxy(file, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name)
          if (Effect.isEffect(member)) return Effect.suspend(() => (before(), member))
          if (typeof member !== "function") return member
          return (...args: ReadonlyArray<unknown>) => {
            const made: unknown = Reflect.apply(member, target, args)
            return Effect.isEffect(made) ? Effect.suspend(() => (before(), made)) : made
          }
        }
      })
