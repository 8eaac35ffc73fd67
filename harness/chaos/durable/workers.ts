/** The worker processes of a database: each that dies is started again. */
import { type ChildProcess, spawn } from "node:child_process"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import type { Point } from "./deaths.ts"
import { sleep, token } from "./http.ts"
import type { Settings } from "./stack.ts"

export const never: Point = { write: 0, isAfter: false }

/** The end of a process that was killed. */
export interface Death {
  readonly at: number
  readonly pid: number
}

class Process {
  readonly child: ChildProcess
  readonly pid: number
  readonly began = Date.now()
  /** The address of its server, once it has one. */
  url: string | undefined
  /** Milliseconds from its start until it served. */
  start = 0
  isFrozen = false
  isDead = false
  readonly failed: Array<string> = []
  private readonly waiting = new Map<string, (value: number) => void>()

  constructor(script: string, settings: object, onDeath: (process: Process) => void) {
    this.child = spawn(process.execPath, [script, JSON.stringify(settings)], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(dirname(script), "compiled") }
    })
    this.pid = this.child.pid ?? 0
    this.child.stdin?.on("error", () => {})
    if (this.child.stdout !== null) {
      createInterface({ input: this.child.stdout }).on("line", (line) => this.hear(line))
    }
    this.child.on("exit", () => {
      this.isDead = true
      this.url = undefined
      onDeath(this)
    })
  }

  private hear(line: string): void {
    const [word = "", value = ""] = line.split(" ")
    if (word === "ready") {
      this.url = `http://127.0.0.1:${value}`
      this.start = Date.now() - this.began
    } else if (word === "failed") this.failed.push(line)
    else this.waiting.get(word)?.(Number(value))
  }

  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`)
  }

  /** A number that the process knows. */
  number(word: string): Promise<number> {
    return new Promise((resolve) => {
      this.waiting.set(word, resolve)
      this.tell(word)
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.isFrozen = signal === "SIGSTOP" || (signal !== "SIGCONT" && this.isFrozen)
    this.child.kill(signal)
  }
}
export type { Process }

export interface Options {
  readonly script: string
  /** The settings of each worker, by its number. */
  readonly settings: (index: number) => Settings
  readonly size: number
  /** The points at which the first processes die, in order; those that follow live. */
  readonly points?: ReadonlyArray<Point>
}

export class Workers {
  readonly deaths: Array<Death> = []
  readonly starts: Array<number> = []
  readonly failures: Array<string> = []
  private readonly options: Options
  private readonly slots: Array<Process> = []
  private readonly points: Array<Point>
  isOver = false

  constructor(options: Options) {
    this.options = options
    this.points = [...(options.points ?? [])]
    for (let index = 0; index < options.size; index++) this.start(index)
  }

  private start(index: number): void {
    const { script, settings } = this.options
    const point = this.points.shift() ?? never
    this.slots[index] = new Process(script, { ...settings(index), token, point }, (process) => {
      this.deaths.push({ at: Date.now(), pid: process.pid })
      this.failures.push(...process.failed)
      this.starts.push(process.start)
      if (this.isOver) return
      // One that fails at once must not be started without end.
      setTimeout(() => this.isOver || this.start(index), process.start === 0 ? 100 : 0)
    })
  }

  get all(): ReadonlyArray<Process> {
    return this.slots.filter(({ isDead }) => !isDead)
  }

  /** Those that serve. */
  get ready(): ReadonlyArray<Process> {
    return this.all.filter(({ isFrozen, url }) => url !== undefined && !isFrozen)
  }

  /** The address of a worker that serves, another one at each call. */
  get url(): string | undefined {
    const { ready } = this
    return ready[this.turn++ % Math.max(1, ready.length)]?.url
  }
  private turn = 0

  /** Waits until all serve, for a minute at most. */
  async whenReady(size = this.options.size): Promise<void> {
    const until = Date.now() + 60_000
    while (this.ready.length < size && Date.now() < until) await sleep(5)
  }

  get isAnyFrozen(): boolean {
    return this.all.some(({ isFrozen }) => isFrozen)
  }

  /** Ends all of them as a crash does. */
  async end(): Promise<void> {
    this.isOver = true
    for (const process of this.all) process.signal("SIGKILL")
    while (this.all.length > 0) await sleep(2)
  }
}
